// Gradients of the objective against finite differences, and on both sides of everything that bends it.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "carnot/core/loss/loss.h"
#include "testing/loss_tensors.h"
#include "testing/random_losses.h"

namespace carnot {
namespace {

using reference::LossSequences;
using reference::LossToken;
using testing::denominators_of;
using testing::for_every_combination;
using testing::inputs_of;
using testing::kReductionConstant;
using testing::random_loss_sequences;

constexpr double kStep = 1e-6;

double loss_of(const ObjectiveOptions& options, const LossSequences& sequences) {
  return policy_loss(options, inputs_of(sequences), denominators_of(sequences, kReductionConstant))
      .total.item<double>();
}

/// Central difference of the loss in one field of each token.
std::vector<double> finite_differences(const ObjectiveOptions& options, LossSequences sequences,
                                       double LossToken::* field) {
  std::vector<double> slopes;
  for (auto& sequence : sequences)
    for (LossToken& token : sequence) {
      const double at = token.*field;
      token.*field = at + kStep;
      const double above = loss_of(options, sequences);
      token.*field = at - kStep;
      const double below = loss_of(options, sequences);
      token.*field = at;
      slopes.push_back((above - below) / (2 * kStep));
    }
  return slopes;
}

struct Gradients {
  at::Tensor logprob, entropy, value;
};

Gradients gradients_of(const ObjectiveOptions& options, const LossSequences& sequences) {
  const LossInputs inputs = inputs_of(sequences);
  policy_loss(options, inputs, denominators_of(sequences, kReductionConstant)).total.backward();
  const auto of = [](const at::Tensor& leaf) { return leaf.grad().defined() ? leaf.grad() : at::zeros_like(leaf); };
  return {of(inputs.logprob_T), of(inputs.entropy_T), of(inputs.value_T)};
}

void expect_slopes(const at::Tensor& gradient, const std::vector<double>& slopes, const std::string& what) {
  ASSERT_EQ(gradient.numel(), static_cast<std::int64_t>(slopes.size()));
  for (std::size_t t = 0; t < slopes.size(); ++t)
    EXPECT_NEAR(gradient.const_data_ptr<double>()[t], slopes[t], 1e-6 * (1 + std::fabs(slopes[t])))
        << what << ", token " << t;
}

TEST(Gradient, IsThatOfTheLossForEveryCombinationWhoseGradientIsItsValues) {
  RandomStream random(1);
  int checked = 0;
  for_every_combination([&](const ObjectiveOptions& options, const std::string& what) {
    const bool of_value = options.clip_gradient == ClipGradient::Zero && !options.kl_straight_through &&
                          options.segment_gradient == SegmentGradient::Shared;
    if (!of_value) return;
    const LossSequences sequences = random_loss_sequences(random, 2);
    const Gradients gradients = gradients_of(options, sequences);
    expect_slopes(gradients.logprob, finite_differences(options, sequences, &LossToken::logprob), what);
    if (options.entropy_coefficient > 0)
      expect_slopes(gradients.entropy, finite_differences(options, sequences, &LossToken::entropy), what);
    if (options.value_coefficient > 0)
      expect_slopes(gradients.value, finite_differences(options, sequences, &LossToken::value), what);
    ++checked;
  });
  EXPECT_EQ(checked, 3 * 2 * 4 * 4 * 2 * 2);
}

TEST(Gradient, OfTheStraightThroughKlIsThatOfK2) {
  RandomStream random(2);
  for (KlEstimator estimator : {KlEstimator::K1, KlEstimator::Absolute, KlEstimator::K2, KlEstimator::K3}) {
    const LossSequences sequences = random_loss_sequences(random, 4);
    const ObjectiveOptions straight{.kl_coefficient = 0.4, .kl_estimator = estimator, .kl_straight_through = true};
    const ObjectiveOptions square{.kl_coefficient = 0.4, .kl_estimator = KlEstimator::K2};
    expect_slopes(gradients_of(straight, sequences).logprob, finite_differences(square, sequences, &LossToken::logprob),
                  "k2");
    ObjectiveOptions plain = straight;
    plain.kl_straight_through = false;
    EXPECT_NEAR(loss_of(straight, sequences), loss_of(plain, sequences), 1e-12);
  }
}

/// The log-ratio of each token's turn or sequence.
double segment_log_ratio(RatioLevel level, const std::vector<LossToken>& sequence, const LossToken& own) {
  double sum = 0, count = 0;
  for (const LossToken& token : sequence) {
    if (level == RatioLevel::Turn && token.turn != own.turn) continue;
    sum += token.logprob - token.logprob_old;
    count += 1;
  }
  return sum / count;
}

/// Token ratios that are `log_ratio` of the token; importance weights stay.
template <class LogRatio>
LossSequences with_token_ratios(const LossSequences& sequences, const LogRatio& log_ratio) {
  LossSequences changed = sequences;
  for (std::size_t i = 0; i < sequences.size(); ++i)
    for (std::size_t t = 0; t < sequences[i].size(); ++t) {
      LossToken& token = changed[i][t];
      const double shift = token.logprob - log_ratio(sequences[i], sequences[i][t]) - token.logprob_old;
      token.logprob_old += shift;
      token.logprob_rollout += shift;
    }
  return changed;
}

TEST(Gradient, OfASegmentsRatioWithEachTokensOwnCreditIsThatOfTokensWithTheSegmentsRatio) {
  RandomStream random(3);
  for (RatioLevel level : {RatioLevel::Turn, RatioLevel::Sequence})
    for (double dual_clip : {0.0, 1.8})
      for (Reduction reduction : {Reduction::TokenMean, Reduction::SequenceMeanTokenMean}) {
        const LossSequences sequences = random_loss_sequences(random, 4);
        const ObjectiveOptions own{
            .ratio = level, .dual_clip = dual_clip, .reduction = reduction, .importance_cap = 1.5};
        ObjectiveOptions by_token = own;
        by_token.ratio = RatioLevel::Token;
        const LossSequences tokens = with_token_ratios(sequences, [&](const auto& sequence, const LossToken& token) {
          return segment_log_ratio(level, sequence, token);
        });
        expect_slopes(gradients_of(own, sequences).logprob, finite_differences(by_token, tokens, &LossToken::logprob),
                      "own");
        EXPECT_NEAR(loss_of(own, sequences), loss_of(by_token, tokens), 1e-10);
      }
}

TEST(Gradient, PreservedAboveTheRangeIsThatOfAnUnclippedRatioAtTheBound) {
  RandomStream random(4);
  for (double dual_clip : {0.0, 1.8}) {
    const LossSequences sequences = random_loss_sequences(random, 6);
    const ObjectiveOptions preserve{
        .clip_low = 0.2, .clip_high = 0.28, .dual_clip = dual_clip, .clip_gradient = ClipGradient::Preserve};
    int above = 0;
    const LossSequences at_bound = with_token_ratios(sequences, [&](const auto&, const LossToken& token) {
      const double log_ratio = token.logprob - token.logprob_old, bound = std::log(1 + 0.28 * token.clip_scale);
      const bool clipped = token.advantage > 0 && log_ratio > bound;
      above += clipped ? 1 : 0;
      return clipped ? bound : log_ratio;
    });
    ObjectiveOptions unclipped = preserve;
    unclipped.clip_gradient = ClipGradient::Zero;
    unclipped.clip_high = 1e12;
    EXPECT_GT(above, 0);
    expect_slopes(gradients_of(preserve, sequences).logprob,
                  finite_differences(unclipped, at_bound, &LossToken::logprob), "bound");
    EXPECT_NEAR(loss_of(preserve, sequences), loss_of(unclipped, at_bound), 1e-10);
  }
}

/// Value and gradient of one token alone.
struct Point {
  double loss = 0, gradient = 0;
};
Point at_ratio(const ObjectiveOptions& options, const LossToken& token) {
  const LossInputs inputs = inputs_of({{token}});
  const Loss loss = policy_loss(options, inputs, denominators_of({{token}}, kReductionConstant));
  loss.total.backward();
  return {loss.total.item<double>(), inputs.logprob_T.grad().item<double>()};
}

// By region of ratio and sign of the advantage, for the range [0.8, 1.28] and dual clip 3: the value of the surrogate's
// ratio and the factor of A grad log p, clipped and gradient-preserving (AEPO, Eq. 7 to 9).
struct Region {
  double advantage, ratio;
  double value, factor, preserved;
};
const std::vector<Region> kRegions = {{+1, 0.10, 0.10, 0.10, 0.10}, {+1, 0.79, 0.79, 0.79, 0.79},
                                      {+1, 0.81, 0.81, 0.81, 0.81}, {+1, 1.00, 1.00, 1.00, 1.00},
                                      {+1, 1.27, 1.27, 1.27, 1.27}, {+1, 1.29, 1.28, 0, 1.28},
                                      {+1, 1.50, 1.28, 0, 1.28},    {+1, 2.99, 1.28, 0, 1.28},
                                      {+1, 3.50, 1.28, 0, 1.28},    {-1, 0.10, 0.80, 0, 0},
                                      {-1, 0.79, 0.80, 0, 0},       {-1, 0.81, 0.81, 0.81, 0.81},
                                      {-1, 1.00, 1.00, 1.00, 1.00}, {-1, 1.27, 1.27, 1.27, 1.27},
                                      {-1, 1.29, 1.29, 1.29, 1.29}, {-1, 1.50, 1.50, 1.50, 1.50},
                                      {-1, 2.99, 2.99, 2.99, 2.99}, {-1, 3.01, 3.00, 0, 0},
                                      {-1, 3.50, 3.00, 0, 0},       {0, 0.10, 0, 0, 0},
                                      {0, 1.00, 0, 0, 0},           {0, 3.50, 0, 0, 0}};

TEST(Gradient, HasTheFactorOfItsRegionAtEveryRatioLevelClippedAndPreserved) {
  for (RatioLevel level : {RatioLevel::Token, RatioLevel::Turn, RatioLevel::Sequence})
    for (double scale : {1.0, 2.5})
      for (const Region& region : kRegions) {
        const LossToken token{.logprob = std::log(region.ratio), .advantage = scale * region.advantage};
        const ObjectiveOptions zero{.ratio = level, .clip_low = 0.2, .clip_high = 0.28, .dual_clip = 3};
        ObjectiveOptions preserve = zero;
        preserve.clip_gradient = ClipGradient::Preserve;
        const Point clipped = at_ratio(zero, token), kept = at_ratio(preserve, token);
        EXPECT_NEAR(clipped.loss, -token.advantage * region.value, 1e-12) << region.advantage << " at " << region.ratio;
        EXPECT_NEAR(kept.loss, clipped.loss, 1e-15);
        EXPECT_NEAR(clipped.gradient, -token.advantage * region.factor, 1e-12)
            << region.advantage << " at " << region.ratio;
        EXPECT_NEAR(kept.gradient, -token.advantage * region.preserved, 1e-12)
            << region.advantage << " at " << region.ratio;
      }
}

/// Loss and finite difference agree a little to the left and right of a place where the gradient changes, and the
/// gradient there is what it should be.
struct Bend {
  const char* what;
  ObjectiveOptions options;
  LossToken token;
  double LossToken::* field;
  double at;  ///< value of the field where the gradient changes
  bool moves_below, moves_above;
};

double single_gradient(const ObjectiveOptions& options, const LossToken& token, double LossToken::* field) {
  const Gradients gradients = gradients_of(options, {{token}});
  return (field == &LossToken::value ? gradients.value : gradients.logprob).item<double>();
}

TEST(Gradient, StopsExactlyWhereItShould) {
  const ObjectiveOptions plain{.clip_low = 0.2, .clip_high = 0.28, .dual_clip = 3};
  const ObjectiveOptions no_dual{.clip_low = 0.2, .clip_high = 0.28, .dual_clip = 0};
  const ObjectiveOptions wide{.clip_low = 1, .clip_high = 1e12, .dual_clip = 0};
  ObjectiveOptions wide_turns = wide, k3 = plain, critic = plain;
  wide_turns.ratio = RatioLevel::Turn;
  k3.kl_coefficient = 1;
  critic.value_coefficient = 1;
  critic.value_clip = 0.5;
  const auto logprob = &LossToken::logprob, value = &LossToken::value;
  // exp(y) - y - 1 = 10 at y = 2.6108.. and, on the other side, -10.99998..
  const double k3_high = 2.6108686, k3_low = -10.9999833;
  const std::vector<Bend> bends = {
      {"upper clip", plain, {.advantage = 1}, logprob, std::log(1.28), true, false},
      {"scaled upper clip", plain, {.advantage = 1, .clip_scale = 0.5}, logprob, std::log(1.14), true, false},
      {"lower clip", plain, {.advantage = -1}, logprob, std::log(0.8), false, true},
      {"scaled lower clip", plain, {.advantage = -1, .clip_scale = 1.5}, logprob, std::log(0.7), false, true},
      {"dual clip", plain, {.advantage = -1}, logprob, std::log(3.0), true, false},
      {"no dual clip", no_dual, {.advantage = -1}, logprob, std::log(3.0), true, true},
      {"upper limit of a log-ratio", wide, {.advantage = -1e-8}, logprob, 20, true, false},
      {"lower limit of a log-ratio", wide, {.advantage = 1e8}, logprob, -20, false, true},
      {"upper limit of a segment's", wide_turns, {.advantage = -1e-4}, logprob, 10, true, false},
      {"k3 above", k3, {.logprob_reference = k3_high}, logprob, 0, false, true},
      {"k3 below", k3, {.logprob_reference = k3_low}, logprob, 0, true, false},
      {"value kept near the old one, from below", critic, {.value_old = 1, .value_target = 3}, value, 1.5, true, false},
      {"value far from the old one, towards it", critic, {.value_old = 1, .value_target = -3}, value, 1.5, true, true},
      {"value kept near the old one, from above",
       critic,
       {.value_old = 1, .value_target = -3},
       value,
       0.5,
       false,
       true}};
  for (const Bend& bend : bends)
    for (bool above : {false, true}) {
      LossToken token = bend.token;
      token.*bend.field = bend.at + (above ? 1e-4 : -1e-4);
      const double gradient = single_gradient(bend.options, token, bend.field);
      const double slope = finite_differences(bend.options, {{token}}, bend.field)[0];
      EXPECT_NEAR(gradient, slope, 1e-5 * (1 + std::fabs(slope))) << bend.what << (above ? ", above" : ", below");
      EXPECT_EQ(gradient != 0, above ? bend.moves_above : bend.moves_below)
          << bend.what << (above ? ", above" : ", below");
    }
}

}  // namespace
}  // namespace carnot
