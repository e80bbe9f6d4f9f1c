#include "carnot/core/hf/adapter_folder.h"

#include <algorithm>

#include "carnot/core/base/file.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/hf/adapter_config.h"
#include "carnot/core/hf/base_model.h"
#include "carnot/core/hf/names_in_files.h"
#include "carnot/core/hf/safetensors.h"
#include "carnot/core/hf/weights.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

/// A projection's module in the family's files: "w1" for LFM2's "gate_proj".
std::string module_of(const ModelFamily& family, std::string_view projection) {
  const std::string ending = "." + std::string(projection);
  for (const auto& [ours, theirs] : family.names_in_files)
    if (ours.ends_with(ending)) return std::string(theirs.substr(theirs.rfind('.') + 1));
  return std::string(projection);
}

/// Those whose modules, in any family's files, have adapters.
std::vector<std::string> projections_of(const std::vector<NamedTensor>& tensors) {
  std::vector<std::string> found;
  for (std::string_view projection : kProjectionNames) {
    const auto has_adapters = [&](const ModelFamily& family) {
      const std::string part = "." + module_of(family, projection) + ".lora_";
      return std::any_of(tensors.begin(), tensors.end(),
                         [&](const NamedTensor& tensor) { return tensor.name.find(part) != std::string::npos; });
    };
    const auto families = model_families();
    if (std::any_of(families.begin(), families.end(), has_adapters)) found.emplace_back(projection);
  }
  return found;
}

/// PEFT adapts a fused projection as a whole; here each has an adapter of its own.
Status refuse_fused(const std::vector<NamedTensor>& tensors, const std::string& where) {
  std::string found;
  for (const char* whole : {"qkv_proj", "gate_up_proj"}) {
    const std::string part = "." + std::string(whole) + ".lora_";
    if (std::any_of(tensors.begin(), tensors.end(),
                    [&](const NamedTensor& t) { return t.name.find(part) != std::string::npos; }))
      found += (found.empty() ? "" : ", ") + std::string(whole);
  }
  if (found.empty()) return Done{};
  return Error{where + ": has adapters of " + found + "; expected ones of " + join(LoraOptions{}.targets) +
               ". merge_and_unload() of PEFT makes weights of them that can be read"};
}

}  // namespace

std::vector<NamedTensor> peft_tensors(const Model& model) {
  const ModelFamily& family = *find_model_family(model.config().family);
  std::vector<NamedTensor> tensors = model.adapters();
  for (NamedTensor& named : tensors) named.name = "base_model.model." + name_in_files(family, named.name);
  return tensors;
}

std::string peft_config(const Model& model, const std::string& base_model) {
  LoraOptions lora = model.lora();
  const ModelFamily& family = *find_model_family(model.config().family);
  for (std::string& target : lora.targets) target = module_of(family, target);
  return adapter_config_json(lora, base_model);
}

Result<LoraOptions> read_adapter_options(const fs::path& folder) {
  const fs::path config = folder / kAdapterConfigFile;
  CARNOT_ASSIGN_OR_RETURN(const auto text, read_file(config));
  CARNOT_ASSIGN_OR_RETURN(auto lora, parse_adapter_config(text, config.string()));
  CARNOT_ASSIGN_OR_RETURN(const auto file, read_safetensors(folder / kAdapterWeightsFile));
  CARNOT_RETURN_IF_ERROR(refuse_fused(file.tensors, (folder / kAdapterWeightsFile).string()));
  lora.targets = projections_of(file.tensors);
  return lora;
}

Status load_adapters(Model& model, const fs::path& folder) {
  CARNOT_ASSIGN_OR_RETURN(const auto lora, read_adapter_options(folder));
  const fs::path weights = folder / kAdapterWeightsFile;
  CARNOT_ASSIGN_OR_RETURN(const auto file, read_weights(weights));
  model.add_adapters(lora, 0);
  return copy_tensors(peft_tensors(model), file.tensors, weights.string());
}

bool holds_adapters(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / kAdapterFolder / kAdapterConfigFile, ignored) &&
         (fs::exists(folder / kBaseModelFile, ignored) || fs::exists(folder / kBaseFolder, ignored));
}

Result<fs::path> find_base(const fs::path& checkpoint, const fs::path& moved_to) {
  const auto base = read_base_model(checkpoint, moved_to);
  if (!base) return base.error();
  if (!*base) return checkpoint / kBaseFolder;
  CARNOT_RETURN_IF_ERROR(check_base_model(**base));
  return (*base)->folder;
}

Result<Model> load_policy(const fs::path& folder, const at::TensorOptions& options, const fs::path& moved_to) {
  if (!holds_adapters(folder)) return load_model(folder, options);
  CARNOT_ASSIGN_OR_RETURN(const auto base, find_base(folder, moved_to));
  auto model = load_merged(base, options);
  if (!model) return model;
  CARNOT_RETURN_IF_ERROR(load_adapters(*model, folder / kAdapterFolder));
  return model;
}

Result<Model> load_merged(const fs::path& folder, const at::TensorOptions& options) {
  auto policy = load_policy(folder, options);
  if (!policy || !policy->has_adapters()) return policy;
  return policy->merged();
}

Result<at::ScalarType> stored_dtype(const fs::path& folder) {
  if (holds_adapters(folder)) {
    const auto base = find_base(folder);
    return base ? stored_dtype(*base) : base.error();
  }
  CARNOT_ASSIGN_OR_RETURN(const auto file, read_model_tensors(folder));
  if (file.tensors.empty()) return Error{folder.string() + ": its weights are empty"};
  return file.tensors.front().tensor.scalar_type();
}

}  // namespace carnot
