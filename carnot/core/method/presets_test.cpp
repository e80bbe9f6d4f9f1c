// What the presets of methods set.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "carnot/core/method/method.h"
#include "testing/equal_methods.h"
#include "testing/field_settings.h"
#include "testing/method_recipes.h"

namespace carnot {
namespace {

using testing::expect_same_credit;
using ::testing::HasSubstr;
using testing::method_of;
using testing::MethodSettings;
using testing::objective_of;

TEST(Presets, SetDefaultsThatExplicitKeysOverride) {
  EXPECT_FALSE(method_of("a2tgpo", {{"a2tgpo.preset", "code"}}).info_gain.query_baseline);
  EXPECT_TRUE(method_of("a2tgpo", {{"a2tgpo.preset", "code"}, {"a2tgpo.info_gain.query_baseline", "true"}})
                  .info_gain.query_baseline);
  EXPECT_TRUE(method_of("a2tgpo").info_gain.query_baseline);
}

TEST(Presets, AreKeptWhenTheOptionsAreOnlyShown) {
  MethodRecipe recipe = parse_method("aepo").value();
  testing::FieldSettings set({{"aepo.preset", "code"}, {"aepo.branch.penalty", "0.3"}});
  recipe.fields(set);
  testing::FieldSettings show;
  recipe.fields(show);
  const Method method = build_method(recipe);
  EXPECT_EQ(method.branch->streak(), BranchStreak::Task);
  EXPECT_FALSE(method.branch->branch_here({.trajectories = 1, .budget = 2, .consecutive = 4, .uniform = 0.99}));
}

/// Methods for which the setting measured here is neither the paper's nor the published program's.
const std::vector<std::string> kThreePresets = {"grpo",  "dr_grpo", "dapo", "rloo", "reinforce_plus_plus",
                                                "gigpo", "arpo"};

ObjectiveOptions objective_with(const std::string& name, const std::string& preset) {
  return method_of(name, {{name + ".preset", preset}}).objective;
}

TEST(Presets, EachSaysInOneLineWhatItSets) {
  for (const MethodEntry& entry : methods()) {
    SCOPED_TRACE(entry.name);
    ASSERT_FALSE(entry.presets().empty());
    const bool three = std::find(kThreePresets.begin(), kThreePresets.end(), entry.name) != kThreePresets.end();
    EXPECT_EQ(entry.presets().front().preset, three ? Preset::Carnot : Preset::Paper);
    std::set<std::string_view> lines;
    for (const PresetEntry& preset : entry.presets()) {
      EXPECT_FALSE(preset.sets.empty());
      EXPECT_LE(preset.sets.size(), 120u);
      EXPECT_TRUE(lines.insert(preset.sets).second) << preset.sets;
    }
  }
}

TEST(Presets, OfAentAreTheFourSetsOfNumbers) {
  const auto numbers = [](const std::string& preset) {
    const ObjectiveOptions objective = method_of("grpo + aent", {{"aent.preset", preset}}).objective;
    EXPECT_EQ(objective.entropy_coefficient, preset == "reported" ? 2e-3 : 2e-4);
    return std::pair(objective.entropy_clamp, objective.adaptive_entropy.enabled);
  };
  EXPECT_EQ(numbers("paper"), std::pair(0.4, true));
  EXPECT_EQ(numbers("code"), std::pair(0.4, false));
  EXPECT_EQ(numbers("readme"), std::pair(0.3, false));
  EXPECT_EQ(numbers("reported"), std::pair(0.4, false));
}

TEST(Presets, CarnotIsTheDefaultAndUnchanged) {
  for (const std::string& name : kThreePresets) {
    SCOPED_TRACE(name);
    const Method plain = method_of(name), named = method_of(name, {{name + ".preset", "carnot"}});
    expect_same_credit(plain, named);
    EXPECT_EQ(objective_of(plain), objective_of(named));
    EXPECT_EQ(plain.objective.dual_clip, name == "dapo" ? 10 : 3);
    EXPECT_EQ(plain.objective.kl_in_reward, 0);
    EXPECT_EQ(plain.objective.reduction, name == "dr_grpo" ? Reduction::TokenSumOverConstant : Reduction::TokenMean);
    EXPECT_EQ(plain.objective.entropy_coefficient, 0);
  }
}

TEST(Presets, PaperMeansThePapersLoss) {
  for (const std::string& name : kThreePresets) EXPECT_EQ(objective_with(name, "paper").dual_clip, 0) << name;
  const ObjectiveOptions grpo = objective_with("grpo", "paper");
  EXPECT_EQ(grpo.reduction, Reduction::SequenceMeanTokenMean);
  EXPECT_EQ(grpo.kl_coefficient, 0.04);
  EXPECT_EQ(grpo.kl_estimator, KlEstimator::K3);
  EXPECT_EQ(objective_with("dr_grpo", "paper").reduction, Reduction::SequenceMeanTokenSum);
  EXPECT_EQ(objective_with("arpo", "paper").reduction, Reduction::SequenceMeanTokenMean);
  EXPECT_EQ(objective_with("dapo", "paper").clip_high, 0.28);
  EXPECT_EQ(objective_with("rloo", "paper").reduction, Reduction::SequenceMeanTokenSum);
}

TEST(Presets, PaperSaysWhereItsNumbersAre) {
  const std::map<std::string_view, std::string_view> places = {{"grpo", "0.04 (section 4.2)"},
                                                               {"rloo", "0.03 in the reward (appendix C)"},
                                                               {"reinforce_plus_plus", "(version 1, eq. 4, table 1)"},
                                                               {"arpo", "0.5 (eq. 5, appendix C.2)"}};
  std::size_t found = 0;
  for (const MethodEntry& entry : methods())
    for (const PresetEntry& preset : entry.presets()) {
      if (preset.preset != Preset::Paper || !places.contains(entry.name)) continue;
      EXPECT_THAT(std::string(preset.sets), HasSubstr(std::string(places.at(entry.name))));
      ++found;
    }
  EXPECT_EQ(found, places.size());
}

TEST(Presets, PaperHasTheKlInTheRewardOfRlooAndReinforcePlusPlus) {
  for (const auto& [name, coefficient] : {std::pair("rloo", 0.03), std::pair("reinforce_plus_plus", 0.01)}) {
    const Method method = method_of(name, {{std::string(name) + ".preset", "paper"}});
    EXPECT_EQ(method.objective.kl_in_reward, coefficient);
    EXPECT_EQ(method.objective.kl_coefficient, 0);
    EXPECT_TRUE(measurements(method).contains(Measurement::Reference));
  }
}

TEST(Presets, PaperOfArpoBranchesAtAThresholdWithoutADraw) {
  const Method method = method_of("arpo", {{"arpo.preset", "paper"}});
  for (const double uniform : {0.0, 0.5, 0.999}) {
    const BranchContext at{.initial_entropy = 1, .trajectories = 1, .budget = 2, .uniform = uniform};
    BranchContext above = at, below = at;
    above.turn_entropy = 1.01;
    below.turn_entropy = 1;
    EXPECT_TRUE(method.branch->branch_here(above));
    EXPECT_FALSE(method.branch->branch_here(below));
  }
}

TEST(Presets, CodeMeansThePublishedProgram) {
  // Methods whose groups of one keep their raw reward.
  for (const std::string name : {"grpo", "dr_grpo", "dapo", "rloo", "gigpo", "arpo"}) {
    RandomStream random(63);
    const auto groups =
        testing::random_groups(random, {.groups = 1, .max_members = 1, .max_turns = 1, .invalid_share = 0});
    const auto all = trajectories(groups);
    const double raw = all[0].penalised_score();
    ASSERT_NE(raw, 0);
    MethodSettings code{{name + ".preset", "code"}};
    if (name == "dapo") code["dapo.reward.overlong_limit"] = "0";
    const CreditTable table = run_credit(method_of(name, code).credit, all);
    const auto largest = std::max_element(table[0].advantage.begin(), table[0].advantage.end(),
                                          [](double a, double b) { return std::abs(a) < std::abs(b); });
    EXPECT_NEAR(*largest, raw, 1e-5) << name;
  }
  EXPECT_EQ(objective_with("gigpo", "code").entropy_coefficient, 0.001);
  EXPECT_EQ(objective_with("rloo", "code").entropy_coefficient, 0.001);
  EXPECT_EQ(objective_with("reinforce_plus_plus", "code").kl_estimator, KlEstimator::K2);
  EXPECT_EQ(method_of("arpo", {{"arpo.preset", "code"}}).branch->measure().candidates, 10);
}

}  // namespace
}  // namespace carnot
