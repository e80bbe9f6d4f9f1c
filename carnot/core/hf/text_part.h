// hf/text_part.h -- the language model inside a checkpoint that also has other parts, such as a vision tower.
#pragma once

#include <string>
#include <vector>

#include "carnot/core/nn/model.h"

namespace carnot {

/// A checkpoint's tensors, those of the text part by the names that they have in a text model, as transformers 4 and 5
/// write them ("language_model.model.layers...", "model.language_model.layers..."); the others are left out, as are
/// layers that predict tokens after the next one ("mtp.layers...").
struct TextPart {
  std::vector<NamedTensor> tensors{};
  std::vector<std::string> left_out{};  ///< the other parts' names, once each: "vision_tower"
};
TextPart text_part(const std::vector<NamedTensor>& tensors);

}  // namespace carnot
