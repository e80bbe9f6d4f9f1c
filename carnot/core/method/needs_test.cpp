// What a method needs measured follows from its rules and its objective, and its rules read only what they declare.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "carnot/core/method/method.h"
#include "testing/method_recipes.h"
#include "testing/random_groups.h"

namespace carnot {
namespace {

using testing::method_of;
using testing::MethodSettings;
using testing::recipe_of;

std::string in_words(const std::set<Measurement>& needed) {
  std::string words;
  for (const Measurement measurement : needed) words += (words.empty() ? "" : " ") + std::string(name_of(measurement));
  return words;
}

/// Every method, role and setting that affects a measurement, with what each file declared when it listed its
/// measurements itself.
struct Declared {
  std::string composition{};
  MethodSettings settings{};
  std::string needed{};
};
const Declared kDeclared[] = {
    {"ppo", {}, "old_policy values"},
    {"grpo", {}, "old_policy reference"},
    {"dr_grpo", {}, "old_policy"},
    {"dapo", {}, "old_policy"},
    {"gspo", {}, "old_policy"},
    {"rloo", {}, "old_policy reference"},
    {"reinforce_plus_plus", {}, "old_policy reference"},
    {"starpo_s", {}, "old_policy values"},
    {"gigpo", {}, "old_policy reference"},
    {"igpo", {}, "old_policy reference info_gain"},
    {"arpo", {}, "old_policy"},
    {"tree_grpo", {}, "old_policy reference"},
    {"oracle", {}, "old_policy oracle"},
    {"aepo", {}, "old_policy"},
    {"a2tgpo", {}, "old_policy info_gain"},
    {"dapo + gigpo", {}, "old_policy"},
    {"dapo + arpo", {}, "old_policy"},
    {"dapo + aepo", {}, "old_policy"},
    {"dapo + aem", {}, "old_policy"},
    {"dapo + a2tgpo", {}, "old_policy info_gain"},
    {"dapo + aent", {}, "old_policy"},
    {"dapo + actfocus", {}, "old_policy reference"},
    {"ppo + gigpo", {}, "old_policy values"},
    {"ppo + arpo", {}, "old_policy values"},
    {"ppo + aepo", {}, "old_policy values"},
    {"ppo + aem", {}, "old_policy values"},
    {"ppo + a2tgpo", {}, "old_policy values info_gain"},
    {"ppo + aent", {}, "old_policy values"},
    {"ppo + actfocus", {}, "old_policy reference values"},
    {"ppo", {{"ppo.bilevel", "true"}}, "old_policy values"},
    {"igpo", {{"igpo.preset", "code"}}, "old_policy reference info_gain"},
    {"rloo", {{"rloo.preset", "paper"}}, "old_policy reference"},
    {"reinforce_plus_plus", {{"reinforce_plus_plus.preset", "paper"}}, "old_policy reference"},
    {"aepo", {{"aepo.preset", "code"}}, "old_policy"},
    {"dapo + a2tgpo", {{"a2tgpo.weight", "0"}, {"a2tgpo.clip_swing", "0"}}, "old_policy info_gain"},
    {"dapo + aem", {{"aem.lambda", "0"}}, "old_policy"},
    {"dapo + actfocus", {{"actfocus.beta", "0"}}, "old_policy"},
    {"dapo + actfocus", {{"actfocus.signal", "surprisal"}}, "old_policy"},
    {"dapo + actfocus", {{"actfocus.signal", "reference_entropy"}}, "old_policy reference"},
    {"dapo + actfocus", {{"actfocus.signal", "log_prob_shift"}}, "old_policy reference"},
    {"a2tgpo + aepo + aem + actfocus + aent", {}, "old_policy reference info_gain"},
};

TEST(Needs, FollowFromTheRulesAndTheObjectiveAsTheyWereDeclared) {
  for (const Declared& declared : kDeclared)
    EXPECT_EQ(in_words(measurements(method_of(declared.composition, declared.settings))), declared.needed)
        << declared.composition << " " << ::testing::PrintToString(declared.settings);
}

TEST(Needs, AreRecordedForEveryMethodInEveryRole) {
  const auto is_recorded = [](const std::string& composition) {
    return std::ranges::any_of(kDeclared, [&](const Declared& one) { return one.composition == composition; });
  };
  for (const MethodEntry& entry : methods()) {
    const std::string name(entry.name);
    EXPECT_TRUE(!entry.is_base() || is_recorded(name)) << name;
    EXPECT_TRUE(!entry.is_add_on() || is_recorded("dapo + " + name)) << name;
    EXPECT_TRUE(!entry.is_add_on() || is_recorded("ppo + " + name)) << name;
  }
}

TEST(Needs, OfTheObjectiveFollowTheRecipesOwnKeys) {
  const auto needed_with = [](const std::string& composition, const std::function<void(ObjectiveOptions&)>& change) {
    const Method method = build_method(recipe_of(composition), [&](Method& built) { change(built.objective); });
    return in_words(measurements(method));
  };
  EXPECT_EQ(needed_with("grpo", [](ObjectiveOptions& o) { o.kl_coefficient = 0; }), "old_policy");
  EXPECT_EQ(needed_with("dapo", [](ObjectiveOptions& o) { o.kl_coefficient = 0.1; }), "old_policy reference");
  EXPECT_EQ(needed_with("dapo", [](ObjectiveOptions& o) { o.kl_in_reward = 0.1; }), "old_policy reference");
  EXPECT_EQ(needed_with("ppo", [](ObjectiveOptions& o) { o.value_coefficient = 0; }), "old_policy values");
  EXPECT_EQ(needed_with("dapo", [](ObjectiveOptions& o) { o.importance_cap = 2; }), "old_policy");
}

TEST(Needs, EachColumnOfARuleOrOfTheObjectiveIsMeasuredOrLeftByTheRollout) {
  for (int i = 0; i < kNumColumns; ++i) {
    const auto column = static_cast<Column>(i);
    const bool by_others = column == Column::LogProbRollout || column == Column::EntropyRollout ||
                           column == Column::LogProbCurrent || column == Column::Reward;
    EXPECT_NE(measurement_of(column).has_value(), by_others) << name_of(column);
  }
}

/// The same random groups with these columns and the dense rewards that credit starts from, with or without gains.
std::vector<Group> groups_with(std::vector<Column> columns, bool info_gain) {
  columns.push_back(Column::Reward);
  RandomStream random(91);
  auto groups = testing::random_groups(random, {.groups = 8, .columns = testing::all_columns()});
  for (Group& group : groups)
    for (Tree& tree : group.trees) {
      for (int i = 0; i < kNumColumns; ++i)
        if (std::ranges::count(columns, static_cast<Column>(i)) == 0) tree.columns.clear(static_cast<Column>(i));
      if (info_gain) continue;
      for (Turn& turn : tree.turns) turn.info_gain.reset();
    }
  return groups;
}

bool same(const std::vector<double>& a, const std::vector<double>& b) {
  return std::ranges::equal(a, b, [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

/// Checks that the rule gives the same credit if the columns that it does not name were never measured.
void expect_reads_what_it_names(const CreditRule& rule) {
  const auto all = groups_with(testing::all_columns(), true), named = groups_with(rule.columns, rule.info_gain);
  const auto of_all = trajectories(all), of_named = trajectories(named);
  const CreditTable expected = run_credit(std::vector{rule}, of_all), credit = run_credit(std::vector{rule}, of_named);
  for (std::size_t i = 0; i < of_all.size(); ++i) {
    EXPECT_TRUE(same(credit[i].reward, expected[i].reward)) << rule.name;
    EXPECT_TRUE(same(credit[i].advantage, expected[i].advantage)) << rule.name;
    EXPECT_TRUE(same(credit[i].weight, expected[i].weight)) << rule.name;
    EXPECT_TRUE(same(credit[i].clip_scale, expected[i].clip_scale)) << rule.name;
    EXPECT_TRUE(same(credit[i].value_target, expected[i].value_target)) << rule.name;
  }
}

TEST(Needs, OfARuleAreNoFewerThanWhatItReads) {
  for (const Declared& declared : kDeclared) {
    SCOPED_TRACE(declared.composition);
    for (const CreditRule& rule : credit_chain(method_of(declared.composition, declared.settings), 0.1))
      expect_reads_what_it_names(rule);
  }
}

}  // namespace
}  // namespace carnot
