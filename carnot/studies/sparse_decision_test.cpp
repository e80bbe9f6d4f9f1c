#include "carnot/studies/sparse_decision.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "carnot/core/base/statistics.h"

namespace carnot {
namespace {

SparseProcess small_process(std::uint64_t seed, int depth, int actions, int optimal) {
  RandomStream random(seed);
  return sparse_process({.depth = depth, .actions = actions, .optimal = optimal}, random);
}

/// Probability of reward by walking every sequence of actions.
double return_by_enumeration(const SparseProcess& process, std::size_t depth = 0) {
  if (depth == process.logits.size()) return 1;
  double denominator = 0;
  for (const double z : process.logits[depth]) denominator += std::exp(z);
  double sum = 0;
  for (std::size_t a = 0; a < process.logits[depth].size(); ++a)
    if (process.optimal[depth][a])
      sum += std::exp(process.logits[depth][a]) / denominator * return_by_enumeration(process, depth + 1);
  return sum;
}

TEST(SparseDecision, DrawsTheOptimalActionsFromTheLikelierHalf) {
  const SparseProcess process = small_process(1, 3, 50, 7);
  ASSERT_EQ(process.logits.size(), 3u);
  for (std::size_t d = 0; d < 3; ++d) {
    std::vector<double> sorted = process.logits[d];
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(std::count(process.optimal[d].begin(), process.optimal[d].end(), true), 7);
    for (std::size_t a = 0; a < 50; ++a)
      if (process.optimal[d][a]) {
        EXPECT_GE(process.logits[d][a], sorted[25]);
      }
  }
}

TEST(SparseDecision, ReturnEqualsTheSumOverAllPaths) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const SparseProcess process = small_process(seed, 3, 8, 3);
    EXPECT_NEAR(expected_return(process), return_by_enumeration(process), 1e-14);
  }
}

TEST(SparseDecision, ReturnGradientEqualsFiniteDifferences) {
  SparseProcess process = small_process(3, 3, 8, 2);
  const auto gradient = return_gradient(process);
  constexpr double kStep = 1e-5;
  for (std::size_t d = 0; d < 3; ++d)
    for (std::size_t a = 0; a < 8; ++a) {
      const double logit = process.logits[d][a];
      process.logits[d][a] = logit + kStep;
      const double above = return_by_enumeration(process);
      process.logits[d][a] = logit - kStep;
      const double below = return_by_enumeration(process);
      process.logits[d][a] = logit;
      EXPECT_NEAR(gradient[d][a], (above - below) / (2 * kStep), 1e-9);
    }
}

TEST(SparseDecision, ClampedEntropyIsThatOfTheLikeliestAndSoIsItsGradient) {
  // Kept: ln 4 and ln 12, that is 1/4 and 3/4. The other two of four are left out.
  const std::vector<double> logits{std::log(4.0), std::log(1.0), std::log(12.0), std::log(3.0)};
  const ClampedEntropy entropy = clamped_entropy(logits, 0.5);
  EXPECT_NEAR(entropy.value, 0.25 * std::log(4) + 0.75 * std::log(4.0 / 3), 1e-15);
  EXPECT_EQ(entropy.gradient[1], 0);
  EXPECT_EQ(entropy.gradient[3], 0);
  EXPECT_NEAR(entropy.gradient[0], -0.25 * (std::log(0.25) + entropy.value), 1e-15);
  EXPECT_NEAR(clamped_entropy(std::vector<double>(7, 2.5), 0).value, std::log(7), 1e-15);
}

TEST(SparseDecision, EntropyGradientEqualsFiniteDifferences) {
  const SparseProcess process = small_process(4, 1, 10, 1);
  std::vector<double> logits = process.logits[0];
  for (const double clamp : {0.0, 0.4}) {
    const ClampedEntropy entropy = clamped_entropy(logits, clamp);
    for (std::size_t a = 0; a < logits.size(); ++a) {
      constexpr double kStep = 1e-6;
      const double logit = logits[a];
      logits[a] = logit + kStep;
      const double above = clamped_entropy(logits, clamp).value;
      logits[a] = logit - kStep;
      const double below = clamped_entropy(logits, clamp).value;
      logits[a] = logit;
      EXPECT_NEAR(entropy.gradient[a], (above - below) / (2 * kStep), 1e-8);
    }
  }
}

TEST(SparseDecision, WithoutABonusTheReturnNeverFalls) {
  RandomStream unread(0);
  const AscentCurve curve = ascend(small_process(5, 2, 30, 3), {.steps = 200, .learning_rate = 0.5}, unread);
  for (std::size_t t = 1; t < curve.expected_return.size(); ++t)
    EXPECT_GE(curve.expected_return[t], curve.expected_return[t - 1]);
  EXPECT_GT(curve.expected_return.back(), 0.9);
}

TEST(SparseDecision, FewOptimalActionsMakeTheFullBonusCostMoreThanTheClampedOne) {
  const auto mean_return = [](EntropyBonus bonus) {
    std::vector<double> means;
    RandomStream unread(0);
    for (std::uint64_t seed = 0; seed < 8; ++seed)
      means.push_back(
          mean(ascend(small_process(seed, 2, 400, 1), {.bonus = bonus, .steps = 200, .learning_rate = 3}, unread)
                   .expected_return));
    return mean(means);
  };
  EXPECT_GT(mean_return(EntropyBonus::None), mean_return(EntropyBonus::Clamped));
  EXPECT_GT(mean_return(EntropyBonus::Clamped), mean_return(EntropyBonus::Full));
}

TEST(SparseDecision, TheAdaptiveCoefficientFallsWhileEntropyIsAboveItsBand) {
  const AscentOptions options{.bonus = EntropyBonus::Adaptive,
                              .steps = 30,
                              .coefficient = 0.05,
                              .adaptive = {.low = 0.5, .high = 1, .rate = 0.001, .least = 0, .most = 0.1, .warmup = 0}};
  RandomStream unread(0);
  const AscentCurve curve = ascend(small_process(6, 2, 200, 2), options, unread);
  EXPECT_EQ(curve.coefficient[0], 0.05);
  EXPECT_EQ(curve.coefficient[1], 0.05);  // the warm-up's last step
  EXPECT_NEAR(curve.coefficient[2], 0.05 - 0.001 * (curve.entropy[1] - 1), 1e-15);
}

TEST(SparseDecision, SampledGradientsAreTheExactOneOnAverage) {
  const SparseProcess process = small_process(7, 3, 6, 2);
  const PathGradient exact = exact_gradient(process, false);
  constexpr int kBatches = 20000, kPaths = 8;
  RandomStream random(11);
  std::vector<std::vector<double>> sum(3, std::vector<double>(6, 0.0)), squares = sum;
  for (int i = 0; i < kBatches; ++i) {
    const PathGradient sampled = sampled_gradient(process, kPaths, false, random);
    for (std::size_t d = 0; d < 3; ++d)
      for (std::size_t a = 0; a < 6; ++a) {
        sum[d][a] += sampled.gradient[d][a];
        squares[d][a] += sampled.gradient[d][a] * sampled.gradient[d][a];
      }
  }
  // The mean reward as baseline, one's own included, shortens the gradient by (paths - 1) / paths.
  constexpr double kShare = double(kPaths - 1) / kPaths;
  for (std::size_t d = 0; d < 3; ++d)
    for (std::size_t a = 0; a < 6; ++a) {
      const double mean = sum[d][a] / kBatches;
      const double error = std::sqrt((squares[d][a] / kBatches - mean * mean) / kBatches);
      EXPECT_NEAR(mean, kShare * exact.gradient[d][a], 5 * error) << d << " " << a;
    }
}

TEST(SparseDecision, OfManyPathsTheNormalisedGradientAndTheVisitsAreTheExactOnes) {
  const SparseProcess process = small_process(8, 3, 6, 3);
  RandomStream random(12);
  const PathGradient exact = exact_gradient(process, true), sampled = sampled_gradient(process, 400000, true, random);
  for (std::size_t d = 0; d < 3; ++d) {
    EXPECT_NEAR(sampled.visits[d], exact.visits[d], 0.003);
    for (std::size_t a = 0; a < 6; ++a) EXPECT_NEAR(sampled.gradient[d][a], exact.gradient[d][a], 0.01);
  }
}

TEST(SparseDecision, WithoutASuccessAmongThePathsNothingIsLearned) {
  SparseProcess process = small_process(9, 2, 50, 1);
  for (std::size_t a = 0; a < 50; ++a)
    if (process.optimal[0][a]) process.logits[0][a] = -60;
  RandomStream random(13);
  const PathGradient sampled = sampled_gradient(process, 64, true, random);
  for (const auto& row : sampled.gradient)
    for (const double x : row) EXPECT_EQ(x, 0);
  EXPECT_EQ(sampled.visits, (std::vector<double>{1, 0}));
}

}  // namespace
}  // namespace carnot
