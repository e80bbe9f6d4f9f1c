#include "carnot/core/train/explanation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "carnot/core/base/random.h"
#include "carnot/core/base/statistics.h"
#include "reference/policy_loss.h"
#include "testing/random_groups.h"

namespace carnot {
namespace {

using reference::LossSequences;

/// Tokens that a step trains: sampled ones that some token of their sequence precedes, of trajectories that count.
std::vector<std::pair<int, int>> trained_tokens(const Trajectory& trajectory) {
  std::vector<std::pair<int, int>> trained;  // token and turn
  int begin = 0;
  for (int k = 0; trajectory.leaf().is_included() && k < trajectory.num_turns(); ++k) {
    if (trajectory.turn(k).context == Context::Fresh) begin = trajectory.turn_offsets[k];
    for (int t = trajectory.sampled_begin(k); t < trajectory.sampled_end(k); ++t)
      if (t > begin) trained.emplace_back(t, k);
  }
  return trained;
}

struct Rows {
  explicit Rows(RandomStream& random, int number = 4)
      : groups(testing::random_groups(random,
                                      {.groups = number, .dropped_share = 0.2, .columns = testing::all_columns()})) {
    for (Group& group : groups) {
      group.step = 0;  // all of them are one batch
      for (Tree& tree : group.trees)
        for (std::size_t k = 0; k < tree.turns.size(); ++k) draw_current(random, tree, static_cast<int>(k));
    }
    all = trajectories(groups);
    credit = testing::random_credit(random, groups);
  }
  Rows(const Rows&) = delete;

  /// Within reach of every clip boundary of the old policy.
  static void draw_current(RandomStream& random, Tree& tree, int turn) {
    const int size = static_cast<int>(tree.turns[turn].tokens.size());
    const std::vector<double> old = tree.columns.edit(Column::LogProbOld, turn, size);
    auto& current = tree.columns.edit(Column::LogProbCurrent, turn, size);
    for (std::size_t t = 0; t < old.size(); ++t)
      current[t] = old[t] + (random.chance(0.1) ? 12 : 0.6) * random.normal();
  }

  LossSequences sequences() const {
    LossSequences sequences;
    for (std::size_t i = 0; i < all.size(); ++i) {
      sequences.emplace_back();
      const auto column = [&](Column which) { return all[i].column(which); };
      const auto logprob = column(Column::LogProbCurrent), old = column(Column::LogProbOld);
      const auto rollout = column(Column::LogProbRollout), frozen = column(Column::LogProbReference);
      const auto value = column(Column::Value);
      for (const auto& [token, turn] : trained_tokens(all[i])) {
        const auto t = static_cast<std::size_t>(token);
        sequences.back().push_back({.logprob = logprob[t],
                                    .logprob_old = old[t],
                                    .logprob_rollout = rollout[t],
                                    .logprob_reference = frozen[t],
                                    .value = value[t],
                                    .value_old = value[t],
                                    .value_target = credit[i].value_target[t],
                                    .advantage = credit[i].advantage[t],
                                    .weight = credit[i].weight[t],
                                    .clip_scale = credit[i].clip_scale[t],
                                    .turn = turn});
      }
    }
    return sequences;
  }

  std::vector<Group> groups;
  std::vector<Trajectory> all{};
  CreditTable credit{};
};

const std::vector<ObjectiveOptions>& objectives() {
  static const std::vector<ObjectiveOptions> table = {
      {},
      {.ratio = RatioLevel::Turn, .clip_high = 0.28, .kl_coefficient = 0.1},
      {.ratio = RatioLevel::Sequence,
       .segment_gradient = SegmentGradient::Shared,
       .reduction = Reduction::SequenceMeanTokenMean},
      {.ratio = RatioLevel::Sequence,
       .sequence = SequenceUnit::Response,
       .reduction = Reduction::SequenceMeanTokenMean},
      {.ratio = RatioLevel::Sequence,
       .sequence = SequenceUnit::Response,
       .segment_gradient = SegmentGradient::Shared,
       .reduction = Reduction::SequenceMeanTokenSum,
       .kl_coefficient = 0.1},
      {.dual_clip = 1.5,
       .clip_gradient = ClipGradient::Preserve,
       .reduction = Reduction::SequenceMeanTokenSum,
       .importance_cap = 2},
      {.reduction = Reduction::TokenSumOverConstant,
       .reduction_constant = 40,
       .kl_coefficient = 0.2,
       .kl_straight_through = true}};
  return table;
}

TEST(Explanation, GradientsEqualTheSlowReference) {
  RandomStream random(1);
  for (int trial = 0; trial < 10; ++trial)
    for (const ObjectiveOptions& options : objectives()) {
      const Rows rows(random);
      const auto explained = explain_steps(options, rows.all, rows.credit);
      ASSERT_TRUE(explained.ok()) << explained.error().message;
      const auto slow = reference::policy_loss(options, rows.sequences());
      for (std::size_t i = 0; i < rows.all.size(); ++i) {
        const TokenExplanation& own = explained->trajectories[i];
        std::vector<bool> trained(own.gradient.size());
        const auto tokens = trained_tokens(rows.all[i]);
        for (std::size_t n = 0; n < tokens.size(); ++n) {
          const auto t = static_cast<std::size_t>(tokens[n].first);
          const double expected = slow.by_logprob[i][n];
          EXPECT_NEAR(own.gradient[t], expected, 1e-10 * (1 + std::fabs(expected)));
          trained[t] = true;
        }
        for (std::size_t t = 0; t < trained.size(); ++t) {
          EXPECT_EQ(std::isnan(own.gradient[t]), !trained[t]);
          EXPECT_EQ(std::isnan(own.ratio[t]), !trained[t]);
        }
      }
    }
}

TEST(Explanation, ThePolicysPartIsTheProductOfCreditShareAndSlope) {
  RandomStream random(8);
  int clipped = 0, compared = 0;
  for (ObjectiveOptions options : objectives()) {
    options.importance_cap = 0;
    if (options.segment_gradient == SegmentGradient::Shared) continue;
    const Rows rows(random);
    const auto explained = explain_steps(options, rows.all, rows.credit);
    ASSERT_TRUE(explained.ok()) << explained.error().message;
    for (std::size_t i = 0; i < rows.all.size(); ++i) {
      const TokenExplanation& own = explained->trajectories[i];
      for (const auto& [token, turn] : trained_tokens(rows.all[i])) {
        const auto t = static_cast<std::size_t>(token);
        const bool preserved = options.clip_gradient == ClipGradient::Preserve && own.clip_state[t] == ClipState::High;
        const double high = 1 + options.clip_high * rows.credit[i].clip_scale[t];
        const double slope = preserved ? high : own.clip_state[t] == ClipState::None ? own.ratio[t] : 0;
        const double credit = rows.credit[i].advantage[t] * rows.credit[i].weight[t] * own.unit_share[t];
        EXPECT_NEAR(own.policy_gradient[t], -credit * slope, 1e-12 * (1 + std::fabs(credit * slope)));
        if (options.kl_coefficient == 0) {
          EXPECT_EQ(own.policy_gradient[t], own.gradient[t]);
        }
        clipped += own.clip_state[t] == ClipState::None ? 0 : 1;
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 300);
  EXPECT_GT(clipped, 50);
}

TEST(Explanation, TheCriticsTermsEqualTheSlowReference) {
  RandomStream random(6);
  for (ObjectiveOptions options : objectives()) {
    options.value_coefficient = 0.7;
    const Rows rows(random);
    const auto explained = explain_steps(options, rows.all, rows.credit);
    ASSERT_TRUE(explained.ok()) << explained.error().message;
    EXPECT_TRUE(explained->excluded.empty());
    const auto slow = reference::policy_loss(options, rows.sequences());
    const LossSequences sequences = rows.sequences();
    for (std::size_t i = 0; i < rows.all.size(); ++i) {
      const TokenExplanation& own = explained->trajectories[i];
      const auto tokens = trained_tokens(rows.all[i]);
      for (std::size_t n = 0; n < tokens.size(); ++n) {
        const auto t = static_cast<std::size_t>(tokens[n].first);
        const double error = sequences[i][n].value - sequences[i][n].value_target;
        EXPECT_NEAR(own.value_loss[t], error * error / 2, 1e-12 * (1 + error * error));
        EXPECT_NEAR(own.value_gradient[t], slow.by_value[i][n], 1e-12);
        EXPECT_NEAR(own.gradient[t], slow.by_logprob[i][n], 1e-10 * (1 + std::fabs(slow.by_logprob[i][n])));
      }
      EXPECT_EQ(std::count_if(own.value_gradient.begin(), own.value_gradient.end(), [](double x) { return x == x; }),
                static_cast<std::ptrdiff_t>(tokens.size()));
    }
  }
}

TEST(Explanation, ScaledAdvantagesFollowTheEntropiesOfTheStep) {
  RandomStream random(7);
  const Rows rows(random);
  std::vector<double> entropies;
  for (const Trajectory& one : rows.all)
    for (const auto& [token, turn] : trained_tokens(one)) entropies.push_back(one.column(Column::EntropyOld)[token]);
  const double centre = mean(entropies), deviation = std_sample(entropies);
  const auto explained = explain_steps({.entropy_scale = 0.2}, rows.all, rows.credit);
  ASSERT_TRUE(explained.ok()) << explained.error().message;
  std::size_t compared = 0;
  for (std::size_t i = 0; i < rows.all.size(); ++i)
    for (const auto& [token, turn] : trained_tokens(rows.all[i])) {
      const auto t = static_cast<std::size_t>(token);
      const double z = (rows.all[i].column(Column::EntropyOld)[t] - centre) / deviation;
      EXPECT_NEAR(explained->trajectories[i].scaled_advantage[t], rows.credit[i].advantage[t] * (1 + 0.2 * z), 1e-12);
      ++compared;
    }
  EXPECT_GT(compared, 10u);
  EXPECT_TRUE(explain_steps({}, rows.all, rows.credit)->trajectories[0].scaled_advantage.empty());
}

TEST(Explanation, TrainingStepsAreExplainedSeparately) {
  RandomStream random(8);
  const ObjectiveOptions options{.entropy_scale = 0.2, .value_coefficient = 1};
  Rows rows(random);
  for (std::size_t g = 0; g < rows.groups.size(); ++g) rows.groups[g].step = static_cast<std::int64_t>(g % 2);
  const auto together = explain_steps(options, rows.all, rows.credit);
  for (const std::int64_t step : {0, 1}) {
    std::vector<Trajectory> own;
    CreditTable credit;
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < rows.all.size(); ++i) {
      if (rows.all[i].group->step != step) continue;
      own.push_back(rows.all[i]);
      credit.push_back(rows.credit[i]);
      numbers.push_back(i);
    }
    const auto alone = explain_steps(options, own, credit);
    for (std::size_t n = 0; n < own.size(); ++n)
      for (const auto& [token, turn] : trained_tokens(own[n])) {
        const auto t = static_cast<std::size_t>(token);
        const TokenExplanation &a = together->trajectories[numbers[n]], &b = alone->trajectories[n];
        EXPECT_EQ(a.gradient[t], b.gradient[t]);
        EXPECT_EQ(a.scaled_advantage[t], b.scaled_advantage[t]);
        EXPECT_EQ(a.value_gradient[t], b.value_gradient[t]);
      }
  }
}

TEST(Explanation, GradientsAreFiniteDifferencesOfTheStepsLoss) {
  RandomStream random(2);
  constexpr double kStep = 1e-6;
  for (const ObjectiveOptions& options : objectives()) {
    if (options.clip_gradient == ClipGradient::Preserve || options.kl_straight_through)
      continue;  // no value's gradient
    if (options.ratio != RatioLevel::Token && options.segment_gradient == SegmentGradient::Own)
      continue;  // nor is a segment's ratio with each token's own credit
    const Rows rows(random, 2);
    const auto explained = explain_steps(options, rows.all, rows.credit);
    LossSequences sequences = rows.sequences();
    for (std::size_t i = 0; i < sequences.size(); ++i)
      for (std::size_t n = 0; n < sequences[i].size(); ++n) {
        double& at = sequences[i][n].logprob;
        const double keep = at;
        at = keep + kStep;
        const double up = reference::policy_loss(options, sequences).loss;
        at = keep - kStep;
        const double down = reference::policy_loss(options, sequences).loss;
        at = keep;
        const double slope = (up - down) / (2 * kStep);
        const auto token = static_cast<std::size_t>(trained_tokens(rows.all[i])[n].first);
        EXPECT_NEAR(explained->trajectories[i].gradient[token], slope, 1e-5 * (1 + std::fabs(slope)));
      }
  }
}

/// One turn of prompt and sampled tokens with ratio r for each, all of one advantage.
struct OneTurn {
  OneTurn(const std::vector<double>& ratios, double advantage) {
    const int size = static_cast<int>(ratios.size()) + 1;
    Tree tree{.turns = {{.tokens = std::vector<TokenId>(size),
                         .sampled_begin = 1,
                         .sampled_end = size,
                         .spans = {{SpanKind::Prompt, 0, 1}, {SpanKind::Action, 1, size}}}},
              .leaves = {{.turn = 0}}};
    tree.columns.edit(Column::LogProbOld, 0, size);
    tree.columns.edit(Column::LogProbCurrent, 0, size);
    for (std::size_t t = 0; t < ratios.size(); ++t) {
      tree.columns.edit(Column::LogProbOld, 0, size)[t + 1] = -30;
      tree.columns.edit(Column::LogProbCurrent, 0, size)[t + 1] = -30 + std::log(ratios[t]);
    }
    groups.push_back({.trees = {tree}});
    all = trajectories(groups);
    credit = fresh_credit(all);
    credit[0].advantage.assign(size, advantage);
  }

  TokenExplanation explained(const ObjectiveOptions& options) const {
    return explain_steps(options, all, credit).value().trajectories[0];
  }

  std::vector<Group> groups;
  std::vector<Trajectory> all{};
  CreditTable credit{};
};

TEST(Explanation, NamesTheRegionThatEachTokensRatioIsIn) {
  using enum ClipState;
  const std::vector<double> ratios = {0.5, 1.1, 1.5, 3.5, std::exp(21)};
  const ObjectiveOptions options{.clip_low = 0.2, .clip_high = 0.28, .dual_clip = 3};
  const auto states = [&](double advantage, const ObjectiveOptions& with) {
    const auto all = OneTurn(ratios, advantage).explained(with).clip_state;
    return std::vector<ClipState>(all.begin() + 1, all.end());
  };
  EXPECT_EQ(states(1, options), (std::vector{None, None, High, High, High}));
  EXPECT_EQ(states(-1, options), (std::vector{Low, None, None, Dual, Dual}));
  EXPECT_EQ(states(0, options), (std::vector{None, None, None, None, Limit}));
  EXPECT_EQ(states(-1, {.dual_clip = 0}), (std::vector{Low, None, None, None, Limit}));
  const auto gradients = OneTurn(ratios, 1).explained(options).gradient;
  for (std::size_t t : {3u, 4u, 5u}) EXPECT_EQ(gradients[t], 0);
  EXPECT_NEAR(gradients[1], -0.5 / 5, 1e-12);
}

TEST(Explanation, AnUnchangedPolicyHasTheGradientOfItsWeightedAdvantages) {
  RandomStream random(3);
  Rows rows(random);
  for (Group& group : rows.groups)
    for (Tree& tree : group.trees)
      for (std::size_t k = 0; k < tree.turns.size(); ++k) {
        const int size = static_cast<int>(tree.turns[k].tokens.size());
        const std::vector<double> old = tree.columns.edit(Column::LogProbOld, static_cast<int>(k), size);
        tree.columns.edit(Column::LogProbCurrent, static_cast<int>(k), size) = old;
      }
  const auto explained = explain_steps({}, rows.all, rows.credit);
  double weights = 0, credited = 0, total = 0;
  for (std::size_t i = 0; i < rows.all.size(); ++i)
    for (const auto& [token, turn] : trained_tokens(rows.all[i])) weights += rows.credit[i].weight[token];
  for (std::size_t i = 0; i < rows.all.size(); ++i)
    for (const auto& [token, turn] : trained_tokens(rows.all[i])) {
      const auto t = static_cast<std::size_t>(token);
      const double expected = -rows.credit[i].advantage[t] * rows.credit[i].weight[t] / weights;
      EXPECT_EQ(explained->trajectories[i].ratio[t], 1);
      EXPECT_EQ(explained->trajectories[i].clip_state[t], ClipState::None);
      EXPECT_NEAR(explained->trajectories[i].gradient[t], expected, 1e-12);
      total += explained->trajectories[i].gradient[t];
      credited += expected;
    }
  EXPECT_NEAR(total, credited, 1e-12);
}

TEST(Explanation, ReadsTheColumnsThatTheOptionsNeed) {
  using ::testing::ElementsAre;
  EXPECT_THAT(explained_columns({}), ElementsAre(Column::LogProbCurrent, Column::LogProbOld));
  EXPECT_THAT(
      explained_columns({.kl_coefficient = 0.1, .entropy_scale = 0.2, .value_coefficient = 1, .importance_cap = 2}),
      ElementsAre(Column::LogProbCurrent, Column::LogProbOld, Column::LogProbReference, Column::Value,
                  Column::LogProbRollout, Column::EntropyOld));
}

TEST(Explanation, ReportsWhatItLeavesOutAndWhatItCannotKnow) {
  RandomStream random(4);
  Rows rows(random);
  const ObjectiveOptions with{.entropy_coefficient = 0.1, .value_coefficient = 1};
  const auto left_out = explain_steps(with, rows.all, rows.credit), plain = explain_steps({}, rows.all, rows.credit);
  ASSERT_EQ(left_out->excluded.size(), 1u);
  EXPECT_THAT(left_out->excluded[0], ::testing::HasSubstr("entropy bonus"));
  EXPECT_TRUE(plain->excluded.empty());

  const auto refused = explain_steps({.reduction = Reduction::TokenSumOverConstant,
                                      .entropy_scale = 0.2,
                                      .entropy_scale_over = EntropyScaleOver::CurrentMicroBatch},
                                     rows.all, rows.credit);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr("objective.entropy_scale_over"));
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr("objective.reduction_constant"));

  rows.credit = fresh_credit(rows.all);
  const auto aimless = explain_steps(with, rows.all, rows.credit);
  ASSERT_FALSE(aimless.ok());
  EXPECT_THAT(aimless.error().message, ::testing::HasSubstr("objective.value_coefficient"));
}

TEST(Explanation, UnreadSignalsMayBeMissingInSomeRows) {
  RandomStream random(5);
  Rows rows(random);
  const auto before = explain_steps({}, rows.all, rows.credit);
  rows.groups[0].trees[0].columns.clear(Column::Value);
  rows.groups[0].trees[0].columns.clear(Column::LogProbReference);
  const auto after = explain_steps({}, rows.all, rows.credit);
  for (std::size_t i = 0; i < rows.all.size(); ++i)
    for (const auto& [token, turn] : trained_tokens(rows.all[i])) {
      const auto t = static_cast<std::size_t>(token);
      EXPECT_EQ(after->trajectories[i].gradient[t], before->trajectories[i].gradient[t]);
    }
}

}  // namespace
}  // namespace carnot
