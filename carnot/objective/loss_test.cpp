#include "carnot/objective/loss.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "carnot/base/check.h"
#include "carnot/base/file.h"
#include "carnot/base/random.h"
#include "reference/policy_loss.h"
#include "testing/loss_tensors.h"

namespace carnot {
namespace {

using reference::LossSequences;
using reference::LossToken;
using testing::denominators_of;
using testing::inputs_of;

constexpr double kConstant = 17;

/// Random tokens of up to three turns a trajectory. Ratios reach far outside every clip range.
LossSequences random_sequences(RandomStream& random, std::size_t count) {
  LossSequences sequences(count);
  for (auto& sequence : sequences) {
    int turn = 0;
    const double scale = random.chance(0.3) ? 4.0 : 0.4;
    for (std::uint64_t n = 1 + random.below(9); n > 0; --n) {
      if (random.chance(0.3)) ++turn;
      const double old = -1.5 + random.normal();
      sequence.push_back({.logprob = old + scale * random.normal(),
                          .logprob_old = old,
                          .logprob_rollout = old + 0.7 * random.normal(),
                          .logprob_reference = old + 2 * random.normal(),
                          .entropy = 2 * random.uniform(),
                          .value = random.normal(),
                          .value_old = random.normal(),
                          .value_target = random.normal(),
                          .advantage = random.chance(0.1) ? 0 : random.normal(),
                          .weight = random.chance(0.2) ? 0 : 2 * random.uniform(),
                          .clip_scale = 0.5 + random.uniform(),
                          .turn = turn});
    }
  }
  return sequences;
}

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

/// Calls visit(options, words) for every combination of the options' values.
template <class Visit>
void for_every_combination(const Visit& visit) {
  for (int code = 0; code < 3 * 2 * 2 * 2 * 4 * 4 * 2 * 2 * 2; ++code) {
    int rest = code;
    const auto pick = [&](int n) {
      const int choice = rest % n;
      rest /= n;
      return choice;
    };
    ObjectiveOptions options{.clip_low = 0.2, .clip_high = 0.28, .reduction_constant = kConstant, .value_clip = 0.4};
    options.ratio = static_cast<RatioLevel>(pick(3));
    options.segment_gradient = static_cast<SegmentGradient>(pick(2));
    options.clip_gradient = static_cast<ClipGradient>(pick(2));
    options.dual_clip = pick(2) == 0 ? 0 : 1.8;
    options.reduction = static_cast<Reduction>(pick(4));
    options.kl_estimator = static_cast<KlEstimator>(pick(4));
    options.kl_straight_through = pick(2) == 1;
    options.importance_cap = pick(2) == 0 ? 0 : 1.5;
    const bool extras = pick(2) == 1;
    options.kl_coefficient = extras ? 0.3 : 0;
    options.entropy_coefficient = extras ? 0.1 : 0;
    options.value_coefficient = extras ? 0.7 : 0;
    visit(options, "combination " + std::to_string(code));
  }
}

TEST(PolicyLoss, EqualsTheTokenByTokenTwinForEveryCombinationOfOptions) {
  RandomStream random(1);
  for_every_combination([&](const ObjectiveOptions& options, const std::string& what) {
    const LossSequences sequences = random_sequences(random, 3);
    const LossInputs inputs = inputs_of(sequences);
    const Loss loss = policy_loss(options, inputs, denominators_of(sequences, kConstant));
    const reference::LossTwin twin = reference::policy_loss(options, sequences);
    EXPECT_NEAR(loss.total.item<double>(), twin.loss, 1e-10 * (1 + std::fabs(twin.loss))) << what;
    EXPECT_NEAR(metric(loss, "actor/pg_loss"), twin.policy, 1e-10 * (1 + std::fabs(twin.policy))) << what;
    EXPECT_NEAR(metric(loss, "actor/kl_loss"), twin.kl, 1e-10 * (1 + std::fabs(twin.kl))) << what;
    loss.total.backward();
    expect_gradient(inputs.logprob_T, flat(twin.by_logprob), what);
    expect_gradient(inputs.entropy_T, flat(twin.by_entropy), what);
    expect_gradient(inputs.value_T, flat(twin.by_value), what);
  });
}

/// Central difference of the loss in each token's log-probability.
std::vector<double> finite_differences(const ObjectiveOptions& options, LossSequences sequences) {
  constexpr double kStep = 1e-6;
  std::vector<double> slopes;
  const auto loss = [&] {
    return policy_loss(options, inputs_of(sequences), denominators_of(sequences, kConstant)).total.item<double>();
  };
  for (auto& sequence : sequences)
    for (LossToken& token : sequence) {
      const double at = token.logprob;
      token.logprob = at + kStep;
      const double above = loss();
      token.logprob = at - kStep;
      const double below = loss();
      token.logprob = at;
      slopes.push_back((above - below) / (2 * kStep));
    }
  return slopes;
}

TEST(PolicyLoss, GradientIsThatOfItsValueByFiniteDifferences) {
  RandomStream random(2);
  for (RatioLevel level : {RatioLevel::Token, RatioLevel::Turn, RatioLevel::Sequence})
    for (Reduction reduction : {Reduction::TokenMean, Reduction::SequenceMeanTokenMean}) {
      const ObjectiveOptions options{.ratio = level,
                                     .segment_gradient = SegmentGradient::Shared,
                                     .reduction = reduction,
                                     .kl_coefficient = 0.2,
                                     .importance_cap = 2};
      const LossSequences sequences = random_sequences(random, 4);
      const LossInputs inputs = inputs_of(sequences);
      policy_loss(options, inputs, denominators_of(sequences, kConstant)).total.backward();
      const std::vector<double> slopes = finite_differences(options, sequences);
      for (std::size_t t = 0; t < slopes.size(); ++t)
        EXPECT_NEAR(inputs.logprob_T.grad().const_data_ptr<double>()[t], slopes[t], 1e-6 * (1 + std::fabs(slopes[t])));
    }
}

TEST(PolicyLoss, GradientStopsExactlyAtEachClipBoundary) {
  const ObjectiveOptions options{.clip_low = 0.2, .clip_high = 0.28, .dual_clip = 3};
  struct Case {
    double advantage, ratio;
    bool moves;
  };
  for (const Case& c : {Case{1, 1.279, true}, Case{1, 1.281, false}, Case{1, 0.5, true}, Case{-1, 0.801, true},
                        Case{-1, 0.799, false}, Case{-1, 2.999, true}, Case{-1, 3.001, false}, Case{1, 3.5, false}}) {
    const LossSequences sequences = {{{.logprob = std::log(c.ratio), .advantage = c.advantage}}};
    const LossInputs inputs = inputs_of(sequences);
    policy_loss(options, inputs, denominators_of(sequences)).total.backward();
    const double gradient = inputs.logprob_T.grad().item<double>();
    EXPECT_NEAR(gradient, c.moves ? -c.advantage * c.ratio : 0, 1e-12) << c.advantage << " at ratio " << c.ratio;
    EXPECT_NEAR(gradient, finite_differences(options, sequences)[0], 1e-8);
  }
}

TEST(PolicyLoss, AnUnchangedPolicyHasItsFullGradientEvenWithAClipRangeOfZero) {
  const LossSequences sequences = {{{.logprob = -1, .logprob_old = -1, .advantage = 2}}};
  const LossInputs inputs = inputs_of(sequences);
  policy_loss({.clip_low = 0, .clip_high = 0}, inputs, denominators_of(sequences)).total.backward();
  EXPECT_EQ(inputs.logprob_T.grad().item<double>(), -2);
}

TEST(PolicyLoss, PreservedClipKeepsTheGradientAtTheBound) {
  // methods: AEPO, gradient factors for eps 0.2 / 0.28 and dual clip 3.
  const ObjectiveOptions options{.clip_low = 0.2, .clip_high = 0.28, .clip_gradient = ClipGradient::Preserve};
  struct Case {
    double advantage, ratio, factor;
  };
  for (const Case& c : {Case{1, 1.5, 1.28}, Case{1, 1.1, 1.1}, Case{1, 0.5, 0.5}, Case{-1, 0.5, 0}, Case{-1, 1.5, 1.5},
                        Case{-1, 3.5, 0}}) {
    const LossSequences sequences = {{{.logprob = std::log(c.ratio), .advantage = c.advantage}}};
    const LossInputs inputs = inputs_of(sequences);
    policy_loss(options, inputs, denominators_of(sequences)).total.backward();
    EXPECT_NEAR(inputs.logprob_T.grad().item<double>(), -c.advantage * c.factor, 1e-12);
  }
}

TEST(PolicyLoss, OwnAndSharedSegmentGradientsAgreeWhereCreditIsConstant) {
  RandomStream random(3);
  LossSequences sequences = random_sequences(random, 5);
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
    const LossSequences sequences = random_sequences(random, 6);
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

TEST(PolicyLoss, SinglePrecisionSignalsGiveTheSameLossWithinTheirRounding) {
  RandomStream random(5);
  const LossSequences sequences = random_sequences(random, 4);
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
  const std::string manual = *read_file(std::string(CARNOT_SOURCE_DIR) + "/docs/metrics.md");
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
