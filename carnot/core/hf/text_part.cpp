#include "carnot/core/hf/text_part.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace carnot {
namespace {

/// What the names of the text part begin with, and what they begin with in a text model.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kTextPrefixes = {
    {{"language_model.model.", "model."},
     {"language_model.lm_head.", "lm_head."},
     {"model.language_model.", "model."},
     {"model.text_model.", "model."}}};

std::optional<std::string> name_in_text_model(const std::string& name) {
  for (const auto& [theirs, ours] : kTextPrefixes)
    if (name.starts_with(theirs)) return std::string(ours) + name.substr(theirs.size());
  return std::nullopt;
}

/// Of layers that predict the tokens after the next one, which Qwen3.5's checkpoints have beside the others.
bool predicts_further(const std::string& name) { return name.starts_with("mtp."); }

/// "vision_tower" of "model.vision_tower.layers.0.weight".
std::string part_of(std::string_view name) {
  if (name.starts_with("model.")) name.remove_prefix(6);
  return std::string(name.substr(0, name.find('.')));
}

}  // namespace

TextPart text_part(const std::vector<NamedTensor>& tensors) {
  const bool has_parts = std::any_of(tensors.begin(), tensors.end(), [](const NamedTensor& tensor) {
    return name_in_text_model(tensor.name).has_value();
  });
  TextPart part;
  for (const NamedTensor& tensor : tensors) {
    const auto name = name_in_text_model(tensor.name);
    const bool is_text = has_parts ? name || tensor.name.starts_with("lm_head.") : !predicts_further(tensor.name);
    if (is_text) {
      part.tensors.push_back({name.value_or(tensor.name), tensor.tensor});
    } else if (const std::string other = part_of(tensor.name);
               std::find(part.left_out.begin(), part.left_out.end(), other) == part.left_out.end()) {
      part.left_out.push_back(other);
    }
  }
  return part;
}

}  // namespace carnot
