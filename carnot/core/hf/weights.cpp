#include "carnot/core/hf/weights.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/StringUtil.h>

#include <algorithm>
#include <set>

#include "carnot/core/base/file.h"
#include "carnot/core/hf/model_config_file.h"
#include "carnot/core/hf/safetensors.h"

namespace carnot {
namespace {

/// Some checkpoints store a tied head a second time; that copy says nothing new.
bool is_copy_of_tied_head(const Model& model, const NamedTensor& named, const std::vector<NamedTensor>& all) {
  if (named.name != "lm_head.weight" || !model.config().tied_head) return false;
  return std::any_of(all.begin(), all.end(), [&](const NamedTensor& other) {
    return other.name == "model.embed_tokens.weight" && at::equal(named.tensor, other.tensor);
  });
}

/// Older checkpoints of Llama and Mistral store the rotary frequencies, which config.json says as well.
bool is_rotary_frequency(const std::string& name) { return name.ends_with(".rotary_emb.inv_freq"); }

}  // namespace

Status copy_tensors(const std::vector<NamedTensor>& into, const std::vector<NamedTensor>& from,
                    const std::string& where) {
  std::map<std::string, at::Tensor> given;
  for (const NamedTensor& named : from) given[named.name] = named.tensor;
  std::vector<std::string> problems;
  for (const NamedTensor& named : into) {
    const std::string& name = named.name;
    const at::Tensor& weight = named.tensor;
    const auto found = given.find(name);
    if (found == given.end())
      problems.push_back(where + ": weight '" + name + "' is missing");
    else if (found->second.sizes() != weight.sizes())
      problems.push_back(where + ": weight '" + name + "' has shape " + c10::str(found->second.sizes()) +
                         ", expected " + c10::str(weight.sizes()));
  }
  std::set<std::string> wanted;
  for (const NamedTensor& named : into) wanted.insert(named.name);
  for (const auto& [name, tensor] : given)
    if (!wanted.contains(name) && !is_rotary_frequency(name))
      problems.push_back(where + ": weight '" + name + "' is not one of this model's");
  if (!problems.empty()) return join_errors(problems);

  const at::NoGradGuard no_grad;
  for (const NamedTensor& named : into) named.tensor.copy_(given.at(named.name));
  return Done{};
}

Status load_weights(const Model& model, const std::vector<NamedTensor>& tensors, const std::string& where) {
  std::vector<NamedTensor> telling;
  for (const NamedTensor& named : tensors)
    if (!is_copy_of_tied_head(model, named, tensors)) telling.push_back(named);
  return copy_tensors(model.parameters(), telling, where);
}

Result<ModelConfig> load_model_config(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "config.json";
  CARNOT_ASSIGN_OR_RETURN(const auto text, read_file(path));
  return parse_model_config(text, path.string());
}

Result<Model> load_model(const std::filesystem::path& folder, const at::TensorOptions& options) {
  CARNOT_ASSIGN_OR_RETURN(const auto config, load_model_config(folder));
  CARNOT_ASSIGN_OR_RETURN(const auto file, read_model_tensors(folder));
  Model model = Model::uninitialised(config, options);
  CARNOT_RETURN_IF_ERROR(load_weights(model, file.tensors, folder.string()));
  return model;
}

}  // namespace carnot
