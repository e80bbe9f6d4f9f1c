#include "carnot/nn/adapter_folder.h"

#include <algorithm>

#include "carnot/base/file.h"
#include "carnot/nn/adapter_config.h"
#include "carnot/nn/safetensors.h"

namespace carnot {
namespace {

std::vector<std::string> projections_of(const std::vector<NamedTensor>& tensors) {
  std::vector<std::string> found;
  for (std::string_view projection : kProjectionNames) {
    const std::string part = "." + std::string(projection) + ".lora_";
    if (std::any_of(tensors.begin(), tensors.end(),
                    [&](const NamedTensor& t) { return t.name.find(part) != std::string::npos; }))
      found.emplace_back(projection);
  }
  return found;
}

}  // namespace

std::vector<NamedTensor> peft_tensors(const Model& model) {
  std::vector<NamedTensor> tensors = model.adapters();
  for (NamedTensor& named : tensors) named.name = "base_model.model." + named.name;
  return tensors;
}

Result<LoraOptions> read_adapter_options(const std::filesystem::path& folder) {
  const std::filesystem::path config = folder / kAdapterConfigFile;
  const auto text = read_file(config);
  if (!text) return text.error();
  auto lora = parse_adapter_config(*text, config.string());
  if (!lora) return lora.error();
  const auto file = read_safetensors(folder / kAdapterWeightsFile);
  if (!file) return file.error();
  lora->targets = projections_of(file->tensors);
  return lora;
}

Status load_adapters(Model& model, const std::filesystem::path& folder) {
  const auto lora = read_adapter_options(folder);
  if (!lora) return lora.error();
  const std::filesystem::path weights = folder / kAdapterWeightsFile;
  const auto file = read_safetensors(weights);
  if (!file) return file.error();
  model.add_adapters(*lora, 0);
  return copy_tensors(peft_tensors(model), file->tensors, weights.string());
}

Result<Model> load_policy(const std::filesystem::path& checkpoint, const at::TensorOptions& options) {
  if (!std::filesystem::exists(checkpoint / kAdapterFolder)) return load_model(checkpoint, options);
  auto model = load_model(checkpoint / kBaseFolder, options);
  if (!model) return model;
  if (const Status loaded = load_adapters(*model, checkpoint / kAdapterFolder); !loaded) return loaded.error();
  return model;
}

}  // namespace carnot
