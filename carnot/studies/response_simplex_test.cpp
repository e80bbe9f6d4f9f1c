#include "carnot/studies/response_simplex.h"

#include <gtest/gtest.h>

#include <cmath>

#include "carnot/core/base/random.h"

namespace carnot {
namespace {

using Values = std::vector<double>;

TEST(ResponseSimplex, TwoResponsesGiveTheRateThatCanBeWorkedOutByHand) {
  // pi = 1/4, 3/4. Rewarding the rarer one raises the entropy at the rate ln 4 - H.
  const Values logits{0, std::log(3)};
  const double entropy = 0.25 * std::log(4) + 0.75 * std::log(4.0 / 3);
  EXPECT_NEAR(softmax_entropy(logits), entropy, 1e-15);
  EXPECT_NEAR(entropy_drift(logits, {.weights = {1, 0}}), std::log(4) - entropy, 1e-15);
  EXPECT_NEAR(entropy_drift(logits, {.weights = {0, -2}}), -2 * (std::log(4.0 / 3) - entropy), 1e-15);
}

TEST(ResponseSimplex, TheTheoremEqualsTheMeasuredDriftOnRandomPolicies) {
  RandomStream random(3);
  for (int round = 0; round < 50; ++round) {
    const std::size_t size = 2 + random.below(7);
    Values logits, reference;
    SimplexObjective objective{.bonus = random.uniform(), .kl = random.uniform()};
    for (std::size_t a = 0; a < size; ++a) {
      logits.push_back(random.normal());
      objective.reference.push_back(random.normal());
      objective.weights.push_back(random.normal());
    }
    const double expected = entropy_drift(logits, objective);
    EXPECT_NEAR(measured_entropy_drift(logits, objective), expected, 1e-5 * std::max(1.0, std::abs(expected)));
  }
}

}  // namespace
}  // namespace carnot
