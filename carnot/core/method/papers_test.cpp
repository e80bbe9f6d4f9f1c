// Each method's parts, and the effects of compositions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "carnot/core/credit/gae.h"
#include "carnot/core/credit/group_relative.h"
#include "carnot/core/credit/reinforce.h"
#include "carnot/core/credit/token_gain.h"
#include "carnot/core/credit/turn_group_gain.h"
#include "carnot/core/method/method.h"
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
using testing::MethodSettings;
using testing::rules_of;
using ::testing::StartsWith;

std::string refusal(const std::string& composition) {
  const auto parsed = parse_method(composition);
  return parsed.ok() ? "" : parsed.error().message;
}

/// Whether two methods give the same credit, to the bit, on random groups with every signal.
void expect_same_credit(const Method& a, const Method& b) {
  RandomStream random(61);
  for (int trial = 0; trial < 40; ++trial) {
    const auto groups = testing::random_groups(random, {.columns = testing::all_columns()});
    const auto all = trajectories(groups);
    const CreditTable of_a = run_credit(a.credit, all);
    const CreditTable of_b = run_credit(b.credit, all);
    for (std::size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(of_a[i].advantage, of_b[i].advantage);
      ASSERT_EQ(of_a[i].weight, of_b[i].weight);
      ASSERT_EQ(of_a[i].clip_scale, of_b[i].clip_scale);
    }
  }
}

/// Every field of an objective as a string.
class FieldTexts final : public FieldVisitor {
 public:
  using FieldVisitor::field;
  void field(std::string_view name, bool& value, std::string_view) override { add(name, value ? "true" : "false"); }
  void field(std::string_view name, std::int64_t& value, std::string_view, const Limits&) override {
    add(name, std::to_string(value));
  }
  void field(std::string_view name, double& value, std::string_view, const Limits&) override {
    add(name, ::testing::PrintToString(value));
  }
  void field(std::string_view name, std::string& value, std::string_view, const Limits&) override { add(name, value); }
  void field(std::string_view, std::vector<double>&, std::string_view, const Limits&) override {}
  void field(std::string_view, std::vector<std::string>&, std::string_view, const Limits&) override {}
  void begin_section(std::string_view, std::string_view) override {}
  void end_section() override {}

  std::vector<std::string> lines{};

 private:
  void add(std::string_view name, const std::string& value) { lines.push_back(std::string(name) + " = " + value); }
};

std::vector<std::string> objective_of(Method method) {
  FieldTexts texts;
  method.objective.fields(texts);
  return texts.lines;
}

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

TEST(Presets, OfAentAreTheThreeSetsOfNumbers) {
  const auto numbers = [](const std::string& preset) {
    const ObjectiveOptions objective = method_of("grpo + aent", {{"aent.preset", preset}}).objective;
    EXPECT_EQ(objective.entropy_coefficient, 2e-4);
    return std::pair(objective.entropy_clamp, objective.adaptive_entropy.enabled);
  };
  EXPECT_EQ(numbers("paper"), std::pair(0.4, true));
  EXPECT_EQ(numbers("code"), std::pair(0.4, false));
  EXPECT_EQ(numbers("readme"), std::pair(0.3, false));
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
