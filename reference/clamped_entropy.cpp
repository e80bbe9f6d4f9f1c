#include "reference/clamped_entropy.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace carnot::reference {

ClampedEntropy clamped_entropy(std::span<const double> logits, std::size_t removed) {
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  order.resize(logits.size() - removed);

  ClampedEntropy out{.kept = std::vector<bool>(logits.size()), .by_logit = std::vector<double>(logits.size())};
  double total = 0;
  for (std::size_t v : order) total += std::exp(logits[v] - logits[order[0]]);
  const auto log_q = [&](std::size_t v) { return logits[v] - logits[order[0]] - std::log(total); };
  for (std::size_t v : order) out.entropy -= std::exp(log_q(v)) * log_q(v);
  for (std::size_t v : order) {
    out.kept[v] = true;
    out.by_logit[v] = -std::exp(log_q(v)) * (log_q(v) + out.entropy);
  }
  return out;
}

}  // namespace carnot::reference
