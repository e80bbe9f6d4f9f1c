#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <sstream>

#include "carnot/base/file.h"
#include "carnot/nn/safetensors.h"

namespace carnot {
namespace {

std::string shape_of(const at::Tensor& tensor) {
  std::ostringstream out;
  out << tensor.sizes();
  return out.str();
}

/// Some checkpoints store a tied head a second time; that copy says nothing new.
bool is_copy_of_tied_head(const Model& model, const std::string& name, const at::Tensor& tensor,
                          const std::map<std::string, at::Tensor>& given) {
  const auto embedding = given.find("model.embed_tokens.weight");
  return name == "lm_head.weight" && model.config().tied_head && embedding != given.end() &&
         at::equal(tensor, embedding->second);
}

/// Older checkpoints of Llama and Mistral store the rotary frequencies, which config.json says as well.
bool is_rotary_frequency(const std::string& name) { return name.ends_with(".rotary_emb.inv_freq"); }

}  // namespace

Status load_weights(const Model& model, const std::vector<NamedTensor>& tensors, const std::string& where) {
  std::map<std::string, at::Tensor> given;
  for (const NamedTensor& named : tensors) given[named.name] = named.tensor;
  std::map<std::string, at::Tensor> wanted;
  for (const NamedTensor& named : model.parameters()) wanted[named.name] = named.tensor;

  std::vector<std::string> problems;
  for (const auto& [name, weight] : wanted) {
    const auto found = given.find(name);
    if (found == given.end())
      problems.push_back(where + ": weight '" + name + "' is missing");
    else if (found->second.sizes() != weight.sizes())
      problems.push_back(where + ": weight '" + name + "' has shape " + shape_of(found->second) + ", expected " +
                         shape_of(weight));
  }
  for (const auto& [name, tensor] : given)
    if (!wanted.contains(name) && !is_copy_of_tied_head(model, name, tensor, given) && !is_rotary_frequency(name))
      problems.push_back(where + ": weight '" + name + "' is not one of this model's");
  if (!problems.empty()) return join_errors(problems);

  const at::NoGradGuard no_grad;
  for (const auto& [name, weight] : wanted) weight.copy_(given.at(name));
  return Done{};
}

Result<Model> load_model(const std::filesystem::path& folder, const at::TensorOptions& options) {
  const std::filesystem::path config_path = folder / "config.json";
  const auto text = read_file(config_path);
  if (!text) return text.error();
  const auto config = parse_model_config(*text, config_path.string());
  if (!config) return config.error();
  const auto file = read_model_tensors(folder);
  if (!file) return file.error();
  Model model = Model::uninitialised(*config, options);
  if (const Status loaded = load_weights(model, file->tensors, folder.string()); !loaded) return loaded.error();
  return model;
}

}  // namespace carnot
