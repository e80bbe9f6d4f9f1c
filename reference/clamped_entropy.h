// reference/clamped_entropy.h -- AEnt's clamped entropy of one row of logits, by sorting. Linked by tests only.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace carnot::reference {

struct ClampedEntropy {
  double entropy = 0;
  std::vector<bool> kept{};
  std::vector<double> by_logit{};  ///< gradient; 0 for removed entries
};

/// Without the `removed` lowest entries; of equal ones the larger index goes first.
ClampedEntropy clamped_entropy(std::span<const double> logits, std::size_t removed);

}  // namespace carnot::reference
