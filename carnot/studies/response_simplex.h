// studies/response_simplex.h -- one state with a few responses: how a policy step changes the entropy (AEM's theorem).
//
// Responses a have probabilities pi_a > 0, S(a) = -log pi_a, H = sum pi_a S(a). A step along the natural gradient of
// A log pi_a (the steepest direction in the Fisher metric) changes H at the rate A (S(a) - H): theorem 3.2.2 of
// arXiv:2605.00425.
#pragma once

#include <span>
#include <vector>

namespace carnot {

/// Entropy of softmax(logits), nats.
double softmax_entropy(std::span<const double> logits);

/// sum_a weights_a log pi_a + bonus H - kl KL(pi, softmax(reference)). For one sampled response its weight is its
/// advantage; for the expected policy gradient the weights are pi_a A_a, taken as fixed.
struct SimplexObjective {
  std::vector<double> weights{};
  double bonus = 0;
  double kl = 0;
  std::vector<double> reference{};  ///< logits; needed where kl is not 0
};

/// The rate as the theorem has it: sum_a weights_a (S(a) - H) + (bonus + kl) Var(S) - kl Cov(S, S_reference).
double entropy_drift(std::span<const double> logits, const SimplexObjective& objective);

/// The same measured, without the theorem: the objective's gradient by differences, the natural gradient by solving
/// with the Fisher matrix, the entropy a small step ahead and behind.
double measured_entropy_drift(std::span<const double> logits, const SimplexObjective& objective);

}  // namespace carnot
