// reference/token_statistics.h -- the statistics of one row of logits and their gradients, entry by entry as defined.
// Linked by tests only.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace carnot::reference {

struct RowStatistics {
  double logprob = 0, entropy = 0, logsumexp = 0;
  double clamped_entropy = 0;  ///< 0 where nothing is removed
};

/// Of softmax(logits / temperature). An entry of minus infinity has no probability.
RowStatistics row_statistics(std::span<const double> logits, double temperature, std::size_t target,
                             std::size_t removed);

/// With respect to the logits: of the sum of the statistics, each times its factor in `factors`.
std::vector<double> row_statistics_gradient(std::span<const double> logits, double temperature, std::size_t target,
                                            std::size_t removed, const RowStatistics& factors);

}  // namespace carnot::reference
