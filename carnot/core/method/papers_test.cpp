// Each method's parts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "carnot/core/credit/gae.h"
#include "carnot/core/credit/group_relative.h"
#include "carnot/core/credit/reinforce.h"
#include "carnot/core/credit/token_gain.h"
#include "carnot/core/credit/turn_group_gain.h"
#include "carnot/core/method/method.h"
#include "testing/equal_methods.h"
#include "testing/method_recipes.h"

namespace carnot {
namespace {

using ::testing::ElementsAre;
using testing::expect_same_credit;
using testing::method_of;
using testing::MethodSettings;
using testing::rules_of;

TEST(Igpo, HasKeysForEveryFormOfItsTokenRewards) {
  const MethodSettings first_token = {{"igpo.compat.token_rewards", "true"},
                                      {"igpo.compat.token_baseline", "first_token"},
                                      {"igpo.compat.restart_at_observations", "true"},
                                      {"igpo.deviation", "sample"},
                                      {"igpo.variance_epsilon", "0"},
                                      {"igpo.discount", "0.9"}};
  Method expected;
  expected.credit.push_back(
      token_gain({.discount = 0.9, .baseline = TokenBaseline::FirstToken, .restart_at_observations = true}));
  expect_same_credit(method_of("igpo", first_token), expected);
}

TEST(Whitening, HasAKeyForThePublishedCount) {
  const Whitening published{.count_epsilon = 1e-3};
  const std::string count = ".whitening.count_epsilon";
  Method expected;
  expected.credit = {gae({.whitening = published})};
  expect_same_credit(method_of("ppo", {{"ppo" + count, "1e-3"}}), expected);
  expect_same_credit(method_of("starpo_s", {{"starpo_s" + count, "1e-3"}}), expected);
  expected.credit = {reinforce({.whitening = published})};
  expect_same_credit(method_of("reinforce_plus_plus", {{"reinforce_plus_plus" + count, "1e-3"}}), expected);
  expected.credit = {bilevel_gae({.whitening = published})};
  expect_same_credit(method_of("ppo", {{"ppo" + count, "1e-3"}, {"ppo.bilevel", "true"}}), expected);
}

TEST(A2tgpo, CanLeaveItsSumsUnscaled) {
  Method expected;
  expected.credit = {group_relative({.normalisation = population_normalisation()}),
                     turn_group_gain({.rescale = false})};
  expect_same_credit(method_of("a2tgpo", {{"a2tgpo.rescale", "false"}}), expected);
}

TEST(Dapo, FiltersAndShapesBeforeCredit) {
  const Method method = method_of("dapo");
  EXPECT_THAT(rules_of(method), ElementsAre("overlong_penalty", "group_relative"));
  EXPECT_EQ(method.filter.name, "drop_zero_variance");
  EXPECT_EQ(method.filter.max_refills, 10);
  EXPECT_EQ(method.objective.clip_high, 0.28);
  EXPECT_EQ(method.objective.kl_coefficient, 0);
}

TEST(DrGrpo, DividesByNeitherDeviationNorLength) {
  EXPECT_EQ(method_of("dr_grpo").objective.reduction, Reduction::TokenSumOverConstant);
  expect_same_credit(method_of("dr_grpo"), method_of("grpo", {{"grpo.divide_by_std", "false"}}));
}

TEST(Gspo, IsGrpoWithOneTightlyClippedRatioPerSequence) {
  const Method method = method_of("gspo");
  EXPECT_EQ(method.objective.ratio, RatioLevel::Sequence);
  EXPECT_EQ(method.objective.sequence, SequenceUnit::Trajectory);
  EXPECT_EQ(method.objective.clip_high, 4e-4);
  expect_same_credit(method, method_of("grpo"));
  EXPECT_EQ(method_of("gspo", {{"gspo.sequence", "response"}}).objective.sequence, SequenceUnit::Response);
}

TEST(Gigpo, AddsStepGroupsToItsOwnBaseOrToAnother) {
  EXPECT_THAT(rules_of(method_of("gigpo")), ElementsAre("group_relative", "step_group"));
  EXPECT_THAT(rules_of(method_of("rloo + gigpo")), ElementsAre("leave_one_out", "step_group"));
  EXPECT_EQ(method_of("gigpo").objective.kl_coefficient, 0.01);
}

TEST(Igpo, NeedsGains) {
  const Method method = method_of("igpo");
  EXPECT_THAT(rules_of(method), ElementsAre("turn_gain"));
  EXPECT_TRUE(measurements(method).contains(Measurement::InfoGain));
  EXPECT_THAT(rules_of(method_of("igpo", {{"igpo.preset", "code"}})), ElementsAre("token_gain"));
}

TEST(A2tgpo, SetsTurnRatiosAloneButKeepsThoseOfABase) {
  EXPECT_EQ(method_of("a2tgpo").objective.ratio, RatioLevel::Turn);
  EXPECT_EQ(method_of("a2tgpo").objective.clip_high, 4e-3);
  const Method added = method_of("dapo + a2tgpo");
  EXPECT_EQ(added.objective.ratio, RatioLevel::Token);
  EXPECT_EQ(added.objective.clip_high, 0.28);
  EXPECT_THAT(rules_of(added), ElementsAre("overlong_penalty", "group_relative", "turn_group_gain"));
}

TEST(Arpo, BranchesWhereEntropyRises) {
  const Method method = method_of("arpo", {{"arpo.share_prefix", "true"}});
  EXPECT_EQ(method.branch->name(), "entropy_branch");
  EXPECT_EQ(method.branch->timing(), BranchTiming::AfterObservation);
  EXPECT_THAT(rules_of(method), ElementsAre("group_relative", "shared_prefix"));
  EXPECT_EQ(method_of("arpo", {{"arpo.preset", "code"}}).branch->timing(), BranchTiming::SameTurn);
}

TEST(Aepo, BalancesBranchingClipAndAdvantages) {
  const Method method = method_of("aepo");
  EXPECT_EQ(method.branch->name(), "balanced_branch");
  EXPECT_EQ(method.objective.clip_gradient, ClipGradient::Preserve);
  EXPECT_EQ(method.objective.entropy_scale, 0.2);
  EXPECT_EQ(method.objective.clip_high, 0.28);
  EXPECT_EQ(method.objective.dual_clip, 0);
  EXPECT_EQ(method_of("grpo + aepo").objective.dual_clip, 3) << "the base's own";
  const Method code = method_of("aepo", {{"aepo.preset", "code"}});
  EXPECT_EQ(code.objective.clip_high, 0.2);
  EXPECT_EQ(code.objective.dual_clip, 3);
  EXPECT_EQ(code.objective.entropy_scale_over, EntropyScaleOver::CurrentMicroBatch);
}

TEST(TreeGrpo, ExpandsTreesAndComparesInsideThem) {
  const Method method = method_of("tree_grpo");
  ASSERT_TRUE(method.branch->expansion(6));
  EXPECT_THAT(method.branch->expansion(6)->leaves, ElementsAre(3, 3));
  EXPECT_THAT(rules_of(method), ElementsAre("tree_relative"));
}

TEST(StarpoS, KeepsTheMostVariedGroups) {
  const Method method = method_of("starpo_s");
  EXPECT_EQ(method.filter.name, "keep_most_varied");
  EXPECT_THAT(rules_of(method), ElementsAre("gae"));
  EXPECT_EQ(method.objective.entropy_coefficient, 0.001);
}

TEST(Actfocus, NeedsTheReferenceOnlyIfItsSignalDoes) {
  EXPECT_TRUE(measurements(method_of("dapo + actfocus")).contains(Measurement::Reference));
  EXPECT_FALSE(measurements(method_of("dapo + actfocus", {{"actfocus.beta", "0"}})).contains(Measurement::Reference));
  EXPECT_FALSE(
      measurements(method_of("dapo + actfocus", {{"actfocus.signal", "surprisal"}})).contains(Measurement::Reference));
}

}  // namespace
}  // namespace carnot
