// Sketches against the whole gradients, and their quality against known truths.
#include "carnot/studies/gradient_quality.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>

#include "carnot/core/base/random.h"
#include "carnot/studies/gradient_sketch.h"
#include "testing/random_groups.h"
#include "testing/small_model.h"

namespace carnot {
namespace {

TEST(GradientSketch, KeepsInnerProductsOnAverage) {
  const Model model = testing::small_model({.type = at::kDouble});
  at::manual_seed(4);
  std::vector<at::Tensor> gradients[2];
  double exact = 0, lengths[2] = {0, 0};
  const auto fill = [&](int which) {
    for (const NamedTensor& weight : model.trained()) {
      const at::Tensor gradient = at::randn_like(weight.tensor.detach());
      gradients[which].push_back(which == 0 ? gradient : gradient + gradients[0][gradients[1].size()]);
    }
  };
  fill(0);
  fill(1);
  for (std::size_t w = 0; w < gradients[0].size(); ++w) {
    exact += (gradients[0][w] * gradients[1][w]).sum().item<double>();
    for (const int which : {0, 1}) lengths[which] += gradients[which][w].square().sum().item<double>();
  }
  constexpr int kSeeds = 200;
  double sum = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Sketch sketches[2];
    for (const int which : {0, 1}) {
      std::size_t w = 0;
      for (const NamedTensor& weight : model.trained()) weight.tensor.mutable_grad() = gradients[which][w++];
      sketches[which] = sketch_of_gradients(model, seed);
    }
    for (std::size_t i = 0; i < kSketchNumbers; ++i) sum += sketches[0][i] * sketches[1][i] / kSeeds;
  }
  const double error = std::sqrt(2 * lengths[0] * lengths[1] / kSketchNumbers / kSeeds);
  EXPECT_NEAR(sum, exact, 4 * error);
  EXPECT_GT(exact, 20 * error);
}

TEST(GradientSketch, OfATrajectoryIsThatOfTheCreditedLogProbabilities) {
  RandomStream random(6);
  Model model = testing::small_model({.type = at::kDouble});
  model.requires_grad(true);
  const std::vector<Group> groups = testing::random_groups(
      random, {.groups = 3, .vocabulary = static_cast<int>(model.config().vocab_size), .columns = {}});
  int compared = 0;
  for (const Trajectory& one : trajectories(groups)) {
    bool fresh = false;
    for (int k = 1; k < one.num_turns(); ++k) fresh = fresh || one.turn(k).context == Context::Fresh;
    if (fresh || one.num_sampled() == 0 || !one.leaf().is_included()) continue;
    Credit credit = fresh_credit(std::span(&one, 1))[0];
    for (double& x : credit.advantage) x = random.normal();
    for (double& x : credit.weight) x = random.uniform();
    const Sketch sketch = sketch_of_trajectory(model, one, credit, {.temperature = 0.7}, 9);

    const std::vector<TokenId> tokens = one.tokens();
    const std::vector<std::int64_t> numbers(tokens.begin(), tokens.end());
    const at::Tensor tokens_R = at::tensor(at::ArrayRef<std::int64_t>(numbers), at::kLong);
    const PackedAttention plan{.offsets = {0, static_cast<int>(tokens.size())}};
    const at::Tensor hidden = model.hidden(tokens_R, at::arange(tokens_R.size(0), at::kLong), plan);
    const at::Tensor logprob = at::log_softmax(at::matmul(hidden, model.head().t()) / 0.7, -1);
    at::Tensor loss = at::zeros({}, at::kDouble);
    for (int k = 0; k < one.num_turns(); ++k)
      for (int t = std::max(1, one.sampled_begin(k)); t < one.sampled_end(k); ++t)
        loss = loss + logprob[t - 1][tokens[static_cast<std::size_t>(t)]] *
                          credit.advantage[static_cast<std::size_t>(t)] * credit.weight[static_cast<std::size_t>(t)];
    loss.backward();
    const Sketch slow = sketch_of_gradients(model, 9);
    double scale = 0;
    for (const double x : slow) scale = std::max(scale, std::abs(x));
    for (std::size_t i = 0; i < kSketchNumbers; ++i) ASSERT_NEAR(sketch[i], slow[i], 1e-9 * scale);
    EXPECT_GT(scale, 0);
    ++compared;
  }
  EXPECT_GE(compared, 5);
}

/// Gradients around a direction, one per trajectory, four trajectories a task.
MethodGradients noisy(const std::string& name, const std::vector<double>& direction, double noise, int count,
                      std::uint64_t seed) {
  RandomStream random(seed);
  MethodGradients out{.name = name};
  for (int i = 0; i < count; ++i) {
    out.by_trajectory.push_back(direction);
    for (double& x : out.by_trajectory.back()) x += noise * random.normal();
  }
  return out;
}

std::vector<int> tasks_of(int count) {
  std::vector<int> tasks;
  for (int i = 0; i < count; ++i) tasks.push_back(i / 4);
  return tasks;
}

TEST(GradientQuality, KnowsHowMuchIsSignalAndWhereItPoints) {
  constexpr int kCount = 800, kNumbers = 64;
  std::vector<double> truth(kNumbers, 0.0), aside(kNumbers, 0.0);
  truth[0] = 1;
  aside[0] = 0.8;  // cosine 0.8 with the truth
  aside[1] = 0.6;
  const auto tasks = tasks_of(kCount);
  const auto oracle = noisy("oracle", truth, 0.5, kCount, 1), method = noisy("method", aside, 0.5, kCount, 2);
  const GradientQuality quality = gradient_quality(method, oracle, tasks, 3);
  const double trace = kNumbers * 0.25;
  EXPECT_NEAR(quality.signal_to_noise.value(), 1 + kCount / trace, 0.1 * kCount / trace);
  // Over n / 2 trajectories each mean has trace / (n / 2) of squared noise.
  const double length = 1 + trace / (kCount / 2.0);
  EXPECT_NEAR(quality.cosine.value(), 0.8 / length, 0.03);
  EXPECT_LT(quality.interval->low, *quality.cosine);
  EXPECT_GT(quality.interval->high, *quality.cosine);
  // 0.8 / sqrt(1 + trace / n) = 0.5
  EXPECT_NEAR(quality.trajectories_needed.value(), trace / (0.64 / 0.25 - 1), 1.5);
}

TEST(GradientQuality, TrajectoriesNeededAreThoseThatReachTheCosine) {
  constexpr int kNumbers = 64;
  std::vector<double> truth(kNumbers, 0.0), aside(kNumbers, 0.0);
  truth[0] = 1;
  aside[0] = 0.8;
  aside[1] = 0.6;
  const int needed = 10;  // 16 / 1.56
  double cosines = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const auto sample = noisy("method", aside, 0.5, needed, seed + 50);
    std::vector<double> mean(kNumbers, 0.0);
    for (const auto& one : sample.by_trajectory)
      for (int d = 0; d < kNumbers; ++d) mean[d] += one[d] / needed;
    double squares = 0;
    for (const double x : mean) squares += x * x;
    cosines += mean[0] / std::sqrt(squares) / 2000;
  }
  EXPECT_NEAR(cosines, 0.5, 0.02);
}

TEST(GradientQuality, OfNoiseIsOneAndNeverPointsThere) {
  constexpr int kCount = 400;
  std::vector<double> truth(64, 0.0);
  truth[0] = 1;
  const auto oracle = noisy("oracle", truth, 0.1, kCount, 1);
  const auto noise = noisy("noise", std::vector<double>(64, 0.0), 1, kCount, 2);
  std::vector<double> against(64, 0.0);
  against[0] = -1;
  const auto tasks = tasks_of(kCount);
  const GradientQuality quality = gradient_quality(noise, oracle, tasks, 3);
  EXPECT_NEAR(quality.signal_to_noise.value(), 1, 0.5);
  EXPECT_LT(quality.interval->low, 0);
  EXPECT_GT(quality.interval->high, 0);
  const GradientQuality opposite = gradient_quality(noisy("against", against, 0.1, kCount, 4), oracle, tasks, 3);
  EXPECT_LT(opposite.cosine.value(), -0.9);
  EXPECT_FALSE(opposite.trajectories_needed);
}

TEST(GradientQuality, WithoutGradientsOrTasksThereIsNothingToSay) {
  const MethodGradients zeros{.name = "zeros", .by_trajectory = std::vector<std::vector<double>>(12, {0.0, 0.0})};
  const GradientQuality nothing = gradient_quality(zeros, zeros, tasks_of(12), 1);
  EXPECT_FALSE(nothing.signal_to_noise || nothing.cosine || nothing.trajectories_needed);
  AnalysisReport report;
  add_gradients(std::vector<MethodGradients>{zeros}, tasks_of(12), 1, report);
  EXPECT_TRUE(std::isnan(report.tables[0].numbers("cosine")[0]));
}

}  // namespace
}  // namespace carnot
