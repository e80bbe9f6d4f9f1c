#include "carnot/core/loss/loss.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "carnot/core/base/check.h"
#include "carnot/core/base/file.h"
#include "carnot/core/base/random.h"
#include "reference/policy_loss.h"
#include "testing/loss_tensors.h"
#include "testing/paths.h"
#include "testing/random_losses.h"

namespace carnot {
namespace {

using reference::LossSequences;
using reference::LossToken;
using testing::denominators_of;
using testing::for_every_combination;
using testing::inputs_of;
using testing::random_loss_sequences;

constexpr double kConstant = testing::kReductionConstant;

std::vector<double> flat(const std::vector<std::vector<double>>& nested) {
  std::vector<double> all;
  for (const auto& row : nested) all.insert(all.end(), row.begin(), row.end());
  return all;
}

void expect_gradient(const at::Tensor& leaf, const std::vector<double>& expected, const std::string& what) {
  const at::Tensor gradient = leaf.grad().defined() ? leaf.grad() : at::zeros_like(leaf);
  ASSERT_EQ(gradient.numel(), static_cast<std::int64_t>(expected.size()));
  for (std::size_t t = 0; t < expected.size(); ++t)
    EXPECT_NEAR(gradient.const_data_ptr<double>()[t], expected[t], 1e-10 * (1 + std::fabs(expected[t])))
        << what << ", token " << t;
}

double metric(const Loss& loss, const std::string& name) {
  for (const MetricSum& m : loss.metrics)
    if (m.name == name) return m.sum / m.count;
  ADD_FAILURE() << "no metric " << name;
  return 0;
}

TEST(PolicyLoss, EqualsTheTokenByTokenReferenceForEveryCombinationOfOptions) {
  RandomStream random(1);
  for_every_combination([&](const ObjectiveOptions& options, const std::string& what) {
    const LossSequences sequences = random_loss_sequences(random, 3);
    const LossInputs inputs = inputs_of(sequences);
    const Loss loss = policy_loss(options, inputs, denominators_of(sequences, kConstant));
    const reference::SlowLoss slow = reference::policy_loss(options, sequences);
    EXPECT_NEAR(loss.total.item<double>(), slow.loss, 1e-10 * (1 + std::fabs(slow.loss))) << what;
    EXPECT_NEAR(metric(loss, "actor/pg_loss"), slow.policy, 1e-10 * (1 + std::fabs(slow.policy))) << what;
    EXPECT_NEAR(metric(loss, "actor/kl_loss"), slow.kl, 1e-10 * (1 + std::fabs(slow.kl))) << what;
    loss.total.backward();
    expect_gradient(inputs.logprob_T, flat(slow.by_logprob), what);
    expect_gradient(inputs.entropy_T, flat(slow.by_entropy), what);
    expect_gradient(inputs.value_T, flat(slow.by_value), what);
  });
}

/// Every turn as its own sequence.
LossSequences responses_of(const LossSequences& trajectories) {
  LossSequences responses;
  for (const auto& trajectory : trajectories)
    for (std::size_t t = 0; t < trajectory.size(); ++t) {
      if (t == 0 || trajectory[t].turn != trajectory[t - 1].turn) responses.emplace_back();
      responses.back().push_back(trajectory[t]);
    }
  return responses;
}

TEST(PolicyLoss, OfRowsOfOneResponseEachEqualsTheReferenceWhoseSequencesAreResponses) {
  RandomStream random(7);
  for_every_combination([&](ObjectiveOptions options, const std::string& what) {
    if (!random.chance(0.3)) return;
    const LossSequences trajectories = random_loss_sequences(random, 3), rows = responses_of(trajectories);
    options.sequence = SequenceUnit::Response;
    const LossInputs inputs = inputs_of(rows);
    const Loss loss = policy_loss(options, inputs, denominators_of(rows, kConstant));
    const reference::SlowLoss slow = reference::policy_loss(options, trajectories);
    EXPECT_NEAR(loss.total.item<double>(), slow.loss, 1e-10 * (1 + std::fabs(slow.loss))) << what;
    loss.total.backward();
    expect_gradient(inputs.logprob_T, flat(slow.by_logprob), what);
    expect_gradient(inputs.entropy_T, flat(slow.by_entropy), what);
    expect_gradient(inputs.value_T, flat(slow.by_value), what);
  });
}

TEST(PolicyLoss, AnUnchangedPolicyHasItsFullGradientEvenWithAClipRangeOfZero) {
  const LossSequences sequences = {{{.logprob = -1, .logprob_old = -1, .advantage = 2}}};
  const LossInputs inputs = inputs_of(sequences);
  policy_loss({.clip_low = 0, .clip_high = 0}, inputs, denominators_of(sequences)).total.backward();
  EXPECT_EQ(inputs.logprob_T.grad().item<double>(), -2);
}

TEST(PolicyLoss, OwnAndSharedSegmentGradientsAgreeWhereCreditIsConstant) {
  RandomStream random(3);
  LossSequences sequences = random_loss_sequences(random, 5);
  for (auto& sequence : sequences)
    for (LossToken& token : sequence) {
      token.advantage = sequence[0].advantage;
      token.weight = token.clip_scale = 1;
    }
  for (RatioLevel level : {RatioLevel::Turn, RatioLevel::Sequence}) {
    const LossInputs own = inputs_of(sequences), shared = inputs_of(sequences);
    policy_loss({.ratio = level, .segment_gradient = SegmentGradient::Own}, own, denominators_of(sequences))
        .total.backward();
    policy_loss({.ratio = level, .segment_gradient = SegmentGradient::Shared}, shared, denominators_of(sequences))
        .total.backward();
    EXPECT_TRUE(at::allclose(own.logprob_T.grad(), shared.logprob_T.grad(), 1e-12, 1e-14));
  }
}

TEST(PolicyLoss, MicroBatchesAddUpToOneBatch) {
  RandomStream random(4);
  for_every_combination([&](const ObjectiveOptions& options, const std::string& what) {
    if (!random.chance(0.05)) return;
    const LossSequences sequences = random_loss_sequences(random, 6);
    const LossInputs whole = inputs_of(sequences);
    const Loss one = policy_loss(options, whole, denominators_of(sequences, kConstant));
    one.total.backward();

    double total = 0;
    std::vector<at::Tensor> gradients;
    std::map<std::string, std::pair<double, double>> sums;
    for (const auto& [first, last] : {std::pair<std::size_t, std::size_t>{0, 1}, {1, 4}, {4, 6}}) {
      const LossInputs part = inputs_of(sequences, first, last);
      const Loss loss = policy_loss(options, part, denominators_of(sequences, first, last, kConstant));
      loss.total.backward();
      total += loss.total.item<double>();
      gradients.push_back(part.logprob_T.grad());
      for (const MetricSum& m : loss.metrics) {
        sums[m.name].first += m.sum;
        sums[m.name].second += m.count;
      }
    }
    EXPECT_NEAR(total, one.total.item<double>(), 1e-12 * (1 + std::fabs(total))) << what;
    EXPECT_TRUE(at::allclose(at::cat(gradients), whole.logprob_T.grad(), 1e-12, 1e-15)) << what;
    for (const MetricSum& m : one.metrics)
      EXPECT_NEAR(sums[m.name].first / sums[m.name].second, m.sum / m.count, 1e-10 * (1 + std::fabs(m.sum / m.count)))
          << what << ", " << m.name;
  });
}

TEST(PolicyLoss, ExtremeLogRatiosStayFinite) {
  const LossSequences sequences = {{{.logprob = -1e4, .logprob_old = 0, .advantage = 1},
                                    {.logprob = 0, .logprob_old = -1e4, .logprob_reference = -1e4, .advantage = -1}},
                                   {{.logprob = 0, .logprob_old = -1e4, .logprob_reference = 1e4, .advantage = 1}}};
  for (RatioLevel level : {RatioLevel::Token, RatioLevel::Turn, RatioLevel::Sequence})
    for (ClipGradient clip : {ClipGradient::Zero, ClipGradient::Preserve}) {
      const LossInputs inputs = inputs_of(sequences);
      const Loss loss =
          policy_loss({.ratio = level, .dual_clip = 0, .clip_gradient = clip, .kl_coefficient = 1, .importance_cap = 2},
                      inputs, denominators_of(sequences));
      loss.total.backward();
      EXPECT_TRUE(std::isfinite(loss.total.item<double>()));
      EXPECT_TRUE(at::isfinite(inputs.logprob_T.grad()).all().item<bool>());
    }
}

TEST(PolicyLoss, WithNeutralSettingsEveryAddOnIsTheIdentityBitForBit) {
  RandomStream random(6);
  LossSequences sequences = random_loss_sequences(random, 5);
  for (auto& sequence : sequences) {
    int turn = 0;
    for (LossToken& token : sequence) {
      token.logprob = token.logprob_old + 0.1 * random.uniform();  // within every clip range
      token.logprob_rollout = token.logprob_old;
      token.clip_scale = 1;
      token.turn = turn++;  // a turn for every token
    }
  }
  const std::vector<std::pair<const char*, ObjectiveOptions>> neutral = {
      {"importance weights of 1", {.importance_cap = 1}},
      {"a preserved gradient that is not clipped", {.clip_gradient = ClipGradient::Preserve}},
      {"turns of one token", {.ratio = RatioLevel::Turn}},
      {"turns of one token, shared", {.ratio = RatioLevel::Turn, .segment_gradient = SegmentGradient::Shared}},
      {"a KL of weight 0", {.kl_coefficient = 0, .kl_estimator = KlEstimator::K1, .kl_straight_through = true}},
      {"an entropy bonus of weight 0", {.entropy_coefficient = 0, .entropy_clamp = 0.4}},
      {"an entropy scale of 0", {.entropy_scale = 0, .entropy_scale_over = EntropyScaleOver::CurrentMicroBatch}},
      {"a critic of weight 0", {.value_coefficient = 0, .value_clip = 0.1}},
      {"a dual clip out of reach", {.dual_clip = 1000}}};
  const auto run = [&](const ObjectiveOptions& options) {
    LossInputs inputs = inputs_of(sequences);
    inputs.clamped_entropy_T = inputs.entropy_T.detach();
    const Loss loss = policy_loss(options, inputs, denominators_of(sequences));
    loss.total.backward();
    return std::pair(loss.total.detach(), inputs.logprob_T.grad());
  };
  const auto plain = run({});
  for (const auto& [what, options] : neutral) {
    const auto with = run(options);
    EXPECT_TRUE(at::equal(with.first, plain.first)) << what;
    EXPECT_TRUE(at::equal(with.second, plain.second)) << what;
  }
}

TEST(PolicyLoss, SinglePrecisionSignalsGiveTheSameLossWithinTheirRounding) {
  RandomStream random(5);
  const LossSequences sequences = random_loss_sequences(random, 4);
  const LossInputs wide = inputs_of(sequences), narrow = inputs_of(sequences, at::kFloat);
  const Loss a = policy_loss({}, wide, denominators_of(sequences));
  const Loss b = policy_loss({}, narrow, denominators_of(sequences));
  b.total.backward();
  EXPECT_NEAR(a.total.item<double>(), b.total.item<double>(), 1e-5);
  EXPECT_EQ(narrow.logprob_T.grad().scalar_type(), at::kFloat);
}

TEST(PolicyLoss, AMicroBatchWithoutTokensIsZeroWithoutAGraph) {
  const LossSequences sequences = {{}, {{.advantage = 1}}};
  const Loss loss = policy_loss({}, inputs_of(sequences, 0, 1), denominators_of(sequences, 0, 1, kConstant));
  EXPECT_EQ(loss.total.item<double>(), 0);
  EXPECT_FALSE(loss.total.requires_grad());
  EXPECT_TRUE(loss.metrics.empty());
}

TEST(PolicyLoss, TheBonusTakesTheClampedEntropyWhereThereIsOne) {
  const LossSequences sequences = {{{.entropy = 2}, {.entropy = 3}}};
  LossInputs inputs = inputs_of(sequences);
  inputs.clamped_entropy_T = at::full({2}, 0.5, at::kDouble).requires_grad_();
  const Loss loss = policy_loss({.entropy_coefficient = 0.1}, inputs, denominators_of(sequences));
  loss.total.backward();
  EXPECT_NEAR(loss.total.item<double>(), -0.05, 1e-15);
  EXPECT_FALSE(inputs.entropy_T.grad().defined());
  EXPECT_NEAR(inputs.clamped_entropy_T.grad().sum().item<double>(), -0.1, 1e-15);
  EXPECT_NEAR(metric(loss, "actor/entropy"), 2.5, 1e-15);
  EXPECT_NEAR(metric(loss, "actor/clamped_entropy"), 0.5, 1e-15);
}

TEST(PolicyLoss, CountsClippedSharesOverSampledTokens) {
  LossSequences sequences = {{{.logprob = 1, .advantage = 1}, {.logprob = -1, .advantage = -1}},
                             {{.logprob = 2, .advantage = -1}, {.logprob = 0.1, .advantage = 1}}};
  const Loss loss = policy_loss({}, inputs_of(sequences), denominators_of(sequences));
  EXPECT_EQ(metric(loss, "actor/pg_clipfrac"), 0.5);
  EXPECT_EQ(metric(loss, "actor/pg_clipfrac_lower"), 0.25);
  EXPECT_NEAR(metric(loss, "actor/ppo_kl"), -(1 - 1 + 2 + 0.1) / 4, 1e-15);
}

TEST(PolicyLoss, EveryMetricIsInTheManual) {
  const std::string manual = *read_file(source_path("docs/metrics.md"));
  const LossSequences sequences = {{{.entropy = 2, .advantage = 1}}};
  LossInputs inputs = inputs_of(sequences);
  inputs.clamped_entropy_T = inputs.entropy_T;
  const Loss loss = policy_loss({.value_coefficient = 1, .importance_cap = 2}, inputs, denominators_of(sequences));
  EXPECT_EQ(loss.metrics.size(), 9u);
  for (const MetricSum& m : loss.metrics) EXPECT_NE(manual.find("| `" + m.name + "` |"), std::string::npos) << m.name;
}

TEST(PolicyLoss, AMissingSignalIsABug) {
  const LossSequences sequences = {{{.advantage = 1}}};
  LossInputs inputs = inputs_of(sequences);
  inputs.logprob_reference_T = at::Tensor();
  EXPECT_THROW(policy_loss({.kl_coefficient = 0.1}, inputs, denominators_of(sequences)), CheckError);
}

}  // namespace
}  // namespace carnot
