#include "carnot/core/hf/weights.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/StringUtil.h>

#include <algorithm>
#include <map>
#include <optional>

#include "carnot/core/base/file.h"
#include "carnot/core/base/log.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/hf/model_config_file.h"
#include "carnot/core/hf/names_in_files.h"
#include "carnot/core/hf/safetensors.h"
#include "carnot/core/hf/text_part.h"

namespace carnot {
namespace {

struct FusedProjection {
  std::string_view name, whole;
};
constexpr FusedProjection kFusedProjections[] = {{"q_proj", "qkv_proj"},
                                                 {"k_proj", "qkv_proj"},
                                                 {"v_proj", "qkv_proj"},
                                                 {"gate_proj", "gate_up_proj"},
                                                 {"up_proj", "gate_up_proj"}};

/// "model.layers.0.self_attn.qkv_proj.weight" for "model.layers.0.self_attn.q_proj.weight".
std::string fused(const std::string& name) {
  for (const FusedProjection& projection : kFusedProjections)
    if (const auto whole = with_part(name, projection.name, projection.whole)) return *whole;
  return name;
}

TensorShape shape_of(const StoredWeight& weight) {
  std::vector<std::int64_t> shape = weight.parts.front().sizes().vec();
  for (std::size_t i = 1; i < weight.parts.size(); ++i) shape[0] += weight.parts[i].size(0);
  return {weight.name, shape};
}

/// Some checkpoints store a tied head a second time; that copy says nothing new.
bool is_copy_of_tied_head(const NamedTensor& named, const std::vector<NamedTensor>& all) {
  if (named.name != "lm_head.weight") return false;
  return std::any_of(all.begin(), all.end(), [&](const NamedTensor& other) {
    return other.name == "model.embed_tokens.weight" && at::equal(named.tensor, other.tensor);
  });
}

}  // namespace

std::string_view fused_name(std::string_view projection) {
  for (const FusedProjection& fused : kFusedProjections)
    if (fused.name == projection) return fused.whole;
  return {};
}

std::vector<StoredWeight> stored_weights(const Model& model) {
  const ModelFamily& family = *find_model_family(model.config().family);
  std::vector<StoredWeight> all;
  for (const NamedTensor& weight : model.parameters()) {
    const std::string name = family.fused_projections ? fused(weight.name) : name_in_files(family, weight.name);
    if (all.empty() || all.back().name != name) all.push_back({name, {}});
    all.back().parts.push_back(weight.tensor);
  }
  return all;
}

std::vector<NamedTensor> file_tensors(const std::vector<StoredWeight>& weights) {
  const at::NoGradGuard no_grad;
  std::vector<NamedTensor> tensors;
  for (const auto& [name, parts] : weights)
    tensors.push_back({name, parts.size() == 1 ? parts.front() : at::cat(parts, 0)});
  return tensors;
}

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
  const std::vector<StoredWeight> weights = stored_weights(model);
  std::vector<TensorShape> wanted;
  for (const StoredWeight& weight : weights) wanted.push_back(shape_of(weight));
  CARNOT_ASSIGN_OR_RETURN(const auto found,
                          find_tensors(wanted, without_copies(tensors, model.config().tied_head), where));
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    std::int64_t begin = 0;
    for (const at::Tensor& part : weights[i].parts) {
      part.copy_(found[i].narrow(0, begin, part.size(0)));
      begin += part.size(0);
    }
  }
  return Done{};
}

Result<ModelConfig> load_model_config(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "config.json";
  CARNOT_ASSIGN_OR_RETURN(const auto text, read_file(path));
  return parse_model_config(text, path.string());
}

Result<Model> load_model(const std::filesystem::path& folder, const at::TensorOptions& options) {
  CARNOT_ASSIGN_OR_RETURN(const auto config, load_model_config(folder));
  CARNOT_ASSIGN_OR_RETURN(const auto file, read_model_tensors(folder));
  const TextPart text = text_part(file.tensors);
  Model model = Model::uninitialised(config, options);
  CARNOT_RETURN_IF_ERROR(load_weights(model, text.tensors, folder.string()));
  if (!text.left_out.empty())
    log_info(folder.string() + ": only the text part is loaded, without " + join(text.left_out));
  return model;
}

}  // namespace carnot
