#include "carnot/core/method/method.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/field_settings.h"
#include "testing/method_recipes.h"
#include "testing/random_groups.h"

namespace carnot {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::method_of;
using testing::rules_of;

TEST(Methods, EachOneDocumentsItsOptionsAndBuilds) {
  for (const MethodEntry& entry : methods()) {
    SCOPED_TRACE(entry.name);
    EXPECT_THAT(std::string(entry.paper), ::testing::MatchesRegex("[0-9]{4}\\.[0-9]{5}"));
    EXPECT_FALSE(entry.summary.empty());
    EXPECT_TRUE(entry.is_base() || entry.is_add_on());
    const std::string composition = entry.is_base() ? std::string(entry.name) : "grpo + " + std::string(entry.name);
    MethodRecipe recipe = parse_method(composition).value();
    testing::FieldSettings visitor;
    recipe.fields(visitor);
    EXPECT_THAT(visitor.undocumented(), IsEmpty());
    EXPECT_THAT(visitor.names(), Contains(std::string(entry.name) + ".preset"));
    const Method method = build_method(recipe);
    EXPECT_TRUE(method.branch);
    EXPECT_TRUE(has_base(method));
    EXPECT_TRUE(measurements(method).contains(Measurement::OldPolicy));
  }
}

TEST(Methods, HaveDifferentNames) {
  std::set<std::string_view> names;
  for (const MethodEntry& entry : methods()) EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
}

TEST(ParseMethod, AnswersAnUnknownNameWithTheNearestOneOrAllKnownOnes) {
  ASSERT_FALSE(parse_method("grpq").ok());
  EXPECT_EQ(parse_method("grpq").error().message, "there is no method 'grpq'; did you mean 'grpo'?");
  EXPECT_THAT(parse_method("backpropagation").error().message, HasSubstr("ppo, grpo"));
}

TEST(ParseMethod, RefusesTwoBasesAndEmptyParts) {
  EXPECT_THAT(parse_method("grpo + ppo").error().message, HasSubstr("second base"));
  EXPECT_THAT(parse_method("grpo + grpo").error().message, HasSubstr("twice"));
  EXPECT_FALSE(parse_method("grpo +").ok());
  EXPECT_FALSE(parse_method("").ok());
}

TEST(Grpo, IsGroupRelativeCreditWithASmallKl) {
  const Method method = method_of("grpo");
  EXPECT_EQ(method.name, "grpo");
  EXPECT_THAT(rules_of(method), ElementsAre("group_relative"));
  EXPECT_THAT(measurements(method), ElementsAre(Measurement::OldPolicy, Measurement::Reference));
}

TEST(Grpo, WithoutKlNeedsNoReference) {
  Method method = method_of("grpo");
  method.objective.kl_coefficient = 0;
  EXPECT_THAT(measurements(method), ElementsAre(Measurement::OldPolicy));
}

TEST(Grpo, TakesItsOptions) {
  const Method method = method_of("grpo", {{"grpo.divide_by_std", "false"}, {"grpo.singleton", "raw"}});
  RandomStream random(11);
  const auto groups = testing::random_groups(random, {.groups = 1, .max_members = 1, .invalid_share = 0});
  const auto all = trajectories(groups);
  const CreditTable table = run_credit(method.credit, all);
  const auto sampled = all[0].sampled();
  for (std::size_t t = 0; t < sampled.size(); ++t)
    EXPECT_EQ(table[0].advantage[t], sampled[t] ? all[0].penalised_score() : 0);
}

TEST(Ppo, NeedsTheCritic) {
  const Method method = method_of("ppo", {{"ppo.reward.per_turn", "true"}});
  EXPECT_THAT(rules_of(method), ElementsAre("turn_rewards", "gae"));
  EXPECT_THAT(measurements(method), ElementsAre(Measurement::OldPolicy, Measurement::Values));
  EXPECT_GT(method.objective.value_coefficient, 0);
}

}  // namespace
}  // namespace carnot
