// Methods in sequence: what they add to each other, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "carnot/core/method/method.h"
#include "testing/equal_methods.h"
#include "testing/method_recipes.h"

namespace carnot {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using testing::expect_same_credit;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::method_of;
using testing::MethodSettings;
using testing::objective_of;
using testing::rules_of;
using ::testing::StartsWith;

std::string refusal(const std::string& composition) {
  const auto parsed = parse_method(composition);
  return parsed.ok() ? "" : parsed.error().message;
}

TEST(Compositions, ChainTheirRulesInOrder) {
  const Method method = method_of("grpo + aem + actfocus + aent");
  EXPECT_EQ(method.name, "grpo + aem + actfocus + aent");
  EXPECT_THAT(rules_of(method), ElementsAre("group_relative", "entropy_modulate", "span_weight"));
  EXPECT_EQ(method.objective.entropy_coefficient, 2e-4);
  EXPECT_EQ(method.objective.entropy_clamp, 0.4);
  EXPECT_TRUE(method.objective.adaptive_entropy.enabled);
  EXPECT_THAT(method.warnings, IsEmpty());
}

TEST(Compositions, TheFiveMethodsCompose) {
  const Method method = method_of("a2tgpo + aepo + aem + actfocus + aent");
  EXPECT_THAT(rules_of(method), ElementsAre("group_relative", "turn_group_gain", "entropy_modulate", "span_weight"));
  EXPECT_EQ(method.objective.ratio, RatioLevel::Turn);
  EXPECT_EQ(method.objective.clip_gradient, ClipGradient::Preserve);
  EXPECT_EQ(method.branch->name(), "balanced_branch");
  RandomStream random(62);
  const auto groups = testing::random_groups(random, {.columns = testing::all_columns()});
  const auto all = trajectories(groups);
  for (const Credit& credit : run_credit(method.credit, all))
    for (double a : credit.advantage) EXPECT_TRUE(std::isfinite(a));
}

TEST(Compositions, WithNeutralSettingsAnAddOnIsTheIdentity) {
  const std::vector<std::pair<std::string, MethodSettings>> add_ons = {
      {"aem", {{"aem.lambda", "0"}}},
      {"actfocus", {{"actfocus.alpha", "1"}, {"actfocus.beta", "0"}}},
      {"aent", {{"aent.coefficient", "0"}, {"aent.adaptive.enabled", "false"}}},
      {"gigpo", {{"gigpo.weight", "0"}}},
      {"a2tgpo", {{"a2tgpo.weight", "0"}, {"a2tgpo.clip_swing", "0"}}},
      {"aepo", {{"aepo.branching", "false"}, {"aepo.preserve_gradient", "false"}, {"aepo.entropy_scale", "0"}}}};
  for (const std::string base : {"grpo", "gspo", "dapo", "ppo", "rloo", "reinforce_plus_plus"}) {
    const Method plain = method_of(base);
    for (const auto& [name, settings] : add_ons) {
      SCOPED_TRACE(base + " + " + name);
      const Method composed = method_of(base + " + " + name, settings);
      expect_same_credit(composed, plain);
      EXPECT_EQ(objective_of(composed), objective_of(plain));
      EXPECT_EQ(composed.branch->name(), plain.branch->name());
      EXPECT_EQ(composed.filter.name, plain.filter.name);
    }
  }
}

TEST(Compositions, AllPairsOfABaseAndAnAddOnAreBuiltOrRefusedWithAReason) {
  int built = 0;
  for (const MethodEntry& base : methods())
    for (const MethodEntry& add_on : methods()) {
      const std::string composition = std::string(base.name) + " + " + std::string(add_on.name);
      const std::string why = refusal(composition);
      if (!why.empty()) {
        EXPECT_THAT(why, StartsWith("'")) << composition;
        continue;
      }
      EXPECT_TRUE(base.is_base() && add_on.is_add_on()) << composition;
      EXPECT_TRUE(method_of(composition).branch) << composition;
      ++built;
    }
  EXPECT_GT(built, 60);
}

TEST(Compositions, ThatAreAmbiguousAreRefused) {
  EXPECT_THAT(refusal("aem"), HasSubstr("expected a base before it, as in 'grpo + aem'"));
  EXPECT_THAT(refusal("grpo + dapo"), HasSubstr("'dapo' is a second base"));
  EXPECT_THAT(refusal("arpo + aepo"), HasSubstr("both decide where rollouts branch"));
  EXPECT_THAT(refusal("igpo + a2tgpo"), HasSubstr("both turn information gains into credit"));
  EXPECT_EQ(refusal("gigpo + aepo"), "");
}

TEST(Compositions, ThatWorkAgainstThemselvesAreWarnedAbout) {
  EXPECT_THAT(method_of("aepo + aem").warnings, Contains(HasSubstr("opposite intentions")));
  EXPECT_THAT(method_of("gspo + actfocus").warnings, Contains(HasSubstr("token_mean")));
  EXPECT_THAT(method_of("igpo + arpo").warnings, Contains(HasSubstr("once per branch")));
  EXPECT_THAT(method_of("starpo_s + aent").warnings, Contains(HasSubstr("replaces")));
  EXPECT_THAT(method_of("grpo + aem + gigpo").warnings,
              Contains(HasSubstr("step_group adds credit after entropy_modulate")));
  EXPECT_THAT(method_of("arpo + gigpo", {{"arpo.share_prefix", "true"}}).warnings,
              Contains(HasSubstr("shared_prefix")));
  EXPECT_THAT(method_of("grpo + gigpo + aem").warnings, IsEmpty());
  Method method = method_of("grpo");
  method.objective.kl_estimator = KlEstimator::K1;
  EXPECT_THAT(composition_warnings(method), Contains(HasSubstr("k1")));
}

TEST(Compositions, AreWarnedAboutAfterTheRecipesOwnKeysAreApplied) {
  const MethodRecipe recipe = parse_method("starpo_s + aent").value();
  const Method method = build_method(recipe, [](Method& built) { built.objective.value_coefficient = 0; });
  EXPECT_THAT(method.warnings, ElementsAre(HasSubstr("replaces"), HasSubstr("critic")));
}

TEST(Compositions, WithACriticsLossAndNoValueTargetsAreRefused) {
  const auto problems_of = [](const std::string& composition, double value_coefficient) {
    const MethodRecipe recipe = parse_method(composition).value();
    return build_method(recipe, [&](Method& built) { built.objective.value_coefficient = value_coefficient; }).problems;
  };
  const auto refused = problems_of("grpo + aem", 1);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].key, "objective.value_coefficient");
  EXPECT_THAT(refused[0].why, HasSubstr("no rule of grpo + aem sets any; expected 0, or a method with GAE"));
  EXPECT_THAT(problems_of("grpo + aem", 0), IsEmpty());
  for (const std::string composition : {"ppo", "starpo_s", "ppo + gigpo"})
    for (const double coefficient : {0.0, 0.5}) EXPECT_THAT(problems_of(composition, coefficient), IsEmpty());
}

TEST(Compositions, ARuleThatReadsValuesNeedsACriticEvenWithoutItsLoss) {
  for (const std::string composition : {"ppo", "starpo_s"}) {
    Method method = method_of(composition);
    method.objective.value_coefficient = 0;
    EXPECT_TRUE(measurements(method).contains(Measurement::Values)) << composition;
  }
}

TEST(CreditChain, PutsTheKlOfTheRewardFirst) {
  const Method method = method_of("grpo");
  EXPECT_EQ(credit_chain(method, 0).size(), 1u);
  const auto chain = credit_chain(method, 0.1);
  ASSERT_EQ(chain.size(), 2u);
  EXPECT_EQ(chain[0].name, "kl_in_reward");
}

}  // namespace
}  // namespace carnot
