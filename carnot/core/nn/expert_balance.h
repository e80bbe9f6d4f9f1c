// nn/expert_balance.h -- the auxiliary loss that keeps a model's experts evenly used (Fedus et al., arXiv:2101.03961,
// eq. 4 to 6), over all layers and rows of one pass, as transformers' load_balancing_loss_func has it. No LibTorch.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <vector>

namespace carnot {

/// With f_e the times that a row has expert e, and p_e the probability that a router gives it, as means over rows and
/// layers: loss = E sum_e f_e p_e. It is the number of experts a row has where all are used alike, and larger where
/// those that are often used are probable. f has no gradient.
class ExpertBalance {
 public:
  /// The backward pass of what was counted adds the gradient of weight * loss().
  explicit ExpertBalance(double weight) : weight_(weight) {}

  /// Whether a layer's pass is still to be counted: one that runs again in the backward pass is not.
  bool awaits(int layer) const { return !layers_.contains(layer); }
  /// By expert: rows that have it, and its probabilities' sum over `rows` rows. REQUIRES: awaits(layer).
  void count(int layer, std::int64_t rows, std::span<const std::int64_t> chosen, std::span<const double> probability);

  double loss() const;  ///< 0 before anything was counted
  /// Of weight * loss() by each row's probability of expert e, the same for all rows and layers. Complete once all
  /// layers are counted, before the backward pass.
  std::vector<double> gradient() const;

 private:
  double weight_;
  std::set<int> layers_{};
  double rows_ = 0;                               ///< over all layers
  std::vector<double> chosen_{}, probability_{};  ///< sums, by expert
};

}  // namespace carnot
