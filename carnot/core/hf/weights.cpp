#include "carnot/core/hf/weights.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/StringUtil.h>

#include <algorithm>
#include <map>

#include "carnot/core/base/file.h"
#include "carnot/core/hf/model_config_file.h"
#include "carnot/core/hf/safetensors.h"

namespace carnot {
namespace {

/// Some checkpoints store a tied head a second time; that copy says nothing new.
bool is_copy_of_tied_head(const NamedTensor& named, const std::vector<NamedTensor>& all) {
  if (named.name != "lm_head.weight") return false;
  return std::any_of(all.begin(), all.end(), [&](const NamedTensor& other) {
    return other.name == "model.embed_tokens.weight" && at::equal(named.tensor, other.tensor);
  });
}

}  // namespace

std::vector<NamedTensor> without_copies(const std::vector<NamedTensor>& tensors, bool tied_head) {
  std::vector<NamedTensor> kept;
  for (const NamedTensor& named : tensors)
    if (!tied_head || !is_copy_of_tied_head(named, tensors)) kept.push_back(named);
  return kept;
}

Result<std::vector<at::Tensor>> find_tensors(const std::vector<TensorShape>& wanted,
                                             const std::vector<NamedTensor>& from, const std::string& where) {
  std::map<std::string, at::Tensor> given;
  for (const NamedTensor& named : from)
    // Older checkpoints of Llama and Mistral store the rotary frequencies, which config.json says as well.
    if (!named.name.ends_with(".rotary_emb.inv_freq")) given[named.name] = named.tensor;
  std::vector<std::string> problems;
  std::vector<at::Tensor> tensors;
  for (const auto& [name, shape] : wanted) {
    const auto found = given.extract(name);
    if (!found)
      problems.push_back(where + ": weight '" + name + "' is missing");
    else if (found.mapped().sizes() != shape)
      problems.push_back(where + ": weight '" + name + "' has shape " + c10::str(found.mapped().sizes()) +
                         ", expected " + c10::str(at::IntArrayRef(shape)));
    else
      tensors.push_back(found.mapped());
  }
  for (const auto& [name, tensor] : given)
    problems.push_back(where + ": weight '" + name + "' is not one of this model's");
  if (!problems.empty()) return join_errors(problems);
  return tensors;
}

Status copy_tensors(const std::vector<NamedTensor>& into, const std::vector<NamedTensor>& from,
                    const std::string& where) {
  std::vector<TensorShape> wanted;
  for (const NamedTensor& named : into) wanted.push_back({named.name, named.tensor.sizes().vec()});
  CARNOT_ASSIGN_OR_RETURN(const auto found, find_tensors(wanted, from, where));
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < into.size(); ++i) into[i].tensor.copy_(found[i]);
  return Done{};
}

Status load_weights(const Model& model, const std::vector<NamedTensor>& tensors, const std::string& where) {
  return copy_tensors(model.parameters(), without_copies(tensors, model.config().tied_head), where);
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
