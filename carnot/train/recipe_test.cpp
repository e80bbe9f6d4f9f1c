#include "carnot/train/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace carnot {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Recipe recipe_of(const std::vector<std::string>& settings) {
  return Recipe::parse("seed: 0\n", "recipe.yaml", settings).value();
}

std::string refusal(const std::vector<std::string>& settings) {
  const auto recipe = Recipe::parse("seed: 0\n", "recipe.yaml", settings);
  return recipe ? "" : recipe.error().message;
}

TEST(Recipe, KeepsTheWarningsOfTheParts) {
  EXPECT_THAT(recipe_of({"method=starpo_s + aent"}).method.warnings, ElementsAre(HasSubstr("replaces")));
  EXPECT_THAT(recipe_of({"method=grpo + aem + gigpo"}).method.warnings, ElementsAre(HasSubstr("step_group")));
  EXPECT_THAT(recipe_of({"method=grpo + aem", "method.gspo.epsilon=1", "objective.kl_estimator=k1"}).method.warnings,
              ElementsAre(HasSubstr("k1"), HasSubstr("method.gspo: not used")));
  EXPECT_THAT(recipe_of({"method=grpo + aem"}).method.warnings, IsEmpty());
}

TEST(Recipe, RefusesKeysThatNothingReadsWithTheReason) {
  EXPECT_THAT(refusal({"method=grpo + gigpo", "method.gigpo.statistics=rows"}),
              AllOf(HasSubstr("command line: method.gigpo.statistics: has no effect: the base is grpo"),
                    ::testing::Not(HasSubstr("unknown key"))));
  EXPECT_THAT(refusal({"method=rloo + aepo", "method.aepo.divide_by_std=true"}), HasSubstr("the base is rloo"));
  EXPECT_THAT(refusal({"method=grpo + a2tgpo", "method.a2tgpo.reward.scaling=mean"}), HasSubstr("the base is grpo"));
  EXPECT_THAT(refusal({"method=ppo", "method.ppo.turn_gamma=0.5"}), HasSubstr("has no effect: bilevel is false"));
  EXPECT_THAT(refusal({"method=grpo", "method.grpo.reward.per_turn=true"}), HasSubstr("total reward"));
  EXPECT_THAT(refusal({"method=grpo", "filter.keep_share=0.5"}), HasSubstr("filter.name is none"));
}

TEST(Recipe, LetsASwitchLeaveOtherKeysAtTheirDefaults) {
  EXPECT_EQ(refusal({"method=aepo", "method.aepo.branching=false", "method.aepo.branch.penalty=0.2"}), "");
  EXPECT_THAT(refusal({"method=aepo", "method.aepo.branching=false", "method.aepo.branch.penalty=0.3"}),
              HasSubstr("has no effect: branching is false"));
  EXPECT_EQ(refusal({"method=grpo + aem", "method.aem.lambda=0", "method.aem.gate=0.3"}), "");
}

TEST(Recipe, PutsAFilterBehindAnyBase) {
  EXPECT_EQ(recipe_of({"method=grpo"}).method.filter.name, "none");
  const Method actfocus =
      recipe_of({"method=grpo + actfocus", "filter=keep_most_varied", "filter.keep_share=0.25"}).method;
  EXPECT_EQ(actfocus.filter.name, "keep_most_varied");
  EXPECT_EQ(actfocus.filter.keep_share, 0.25);
  const Method rejection = recipe_of({"method=rloo + aem", "filter=drop_zero_variance", "filter.max_refills=1"}).method;
  EXPECT_EQ(rejection.filter.name, "drop_zero_variance");
  EXPECT_EQ(rejection.filter.max_refills, 1);
}

TEST(Recipe, TakesTheMethodsFilterAsTheDefaultOfItsOwn) {
  EXPECT_EQ(recipe_of({"method=dapo"}).method.filter.max_refills, 10);
  const Method fewer = recipe_of({"method=dapo", "filter.max_refills=2"}).method;
  EXPECT_EQ(fewer.filter.name, "drop_zero_variance");
  EXPECT_EQ(fewer.filter.max_refills, 2);
  EXPECT_EQ(recipe_of({"method=starpo_s", "filter=none"}).method.filter.name, "none");
  EXPECT_THAT(refusal({"method=dapo", "filter=drop_all"}), HasSubstr("expected one of none | drop_zero_variance"));
}

TEST(Recipe, ReadsBackWhatItPrintsForEveryMethodInEveryRole) {
  for (const MethodEntry& entry : methods())
    for (const std::string& composition :
         {std::string(entry.name), "rloo + " + std::string(entry.name), "ppo + " + std::string(entry.name)}) {
      auto recipe = Recipe::parse("seed: 0\n", "recipe.yaml", {"method=" + composition});
      if (!recipe) continue;
      for (const PresetEntry& preset : entry.presets) {
        const std::string setting =
            "method." + std::string(entry.name) + ".preset=" + std::string(name_of(preset.preset));
        auto with_preset = Recipe::parse("seed: 0\n", "recipe.yaml", {"method=" + composition, setting});
        if (!with_preset) continue;  // a preset that only a base reads
        auto again = Recipe::parse(with_preset->to_yaml(), "config.yaml", {});
        ASSERT_TRUE(again) << composition << "\n" << again.error().message;
        EXPECT_EQ(again->to_yaml(), with_preset->to_yaml());
      }
    }
}

TEST(Recipe, ShowsWhatEachPresetSets) {
  for (const FieldRow& row : recipe_of({"method=grpo"}).table().rows())
    if (row.key == "method.grpo.preset") {
      EXPECT_EQ(row.value, "carnot");
      EXPECT_EQ(row.accepts, "carnot | paper | code");
      EXPECT_THAT(row.help, HasSubstr("paper: sequence_mean_token_mean"));
      return;
    }
  FAIL() << "method.grpo.preset is not shown";
}

}  // namespace
}  // namespace carnot
