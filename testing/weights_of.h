// testing/weights_of.h -- named tensors as an optimizer's weights.
#pragma once

#include <vector>

#include "carnot/core/optim/optimizer.h"

namespace carnot::testing {

inline std::vector<Weight> weights_of(const Optimizer::Tensors& tensors) {
  std::vector<Weight> weights;
  for (const auto& [name, tensor] : tensors)
    weights.push_back({.name = name, .values = tensor, .is_table = name == "table"});
  return weights;
}

}  // namespace carnot::testing
