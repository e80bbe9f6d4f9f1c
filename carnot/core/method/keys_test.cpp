// Every key of every method in every role changes what is built, or is refused with the reason; refused keys change
// nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "carnot/core/method/method.h"
#include "testing/method_recipes.h"
#include "testing/random_groups.h"

namespace carnot {
namespace {

using testing::MethodSettings;
using testing::recipe_of;

/// A field's value, and other values that it could have.
struct Field {
  std::string key{};
  bool is_choice = false;  ///< a bool or a word
  std::vector<std::string> others{};
};

class Fields final : public FieldVisitor {
 public:
  using FieldVisitor::field;
  void field(std::string_view name, bool& value, std::string_view) override {
    add(name, true, {value ? "false" : "true"});
    values.push_back(value ? "true" : "false");
  }
  void field(std::string_view name, std::int64_t& value, std::string_view, const Limits& limits) override {
    add(name, false, numbers(static_cast<double>(value), limits, {1, 2, 3, 7}));
    values.push_back(std::to_string(value));
  }
  void field(std::string_view name, double& value, std::string_view, const Limits& limits) override {
    add(name, false, numbers(value, limits, {0, 0.3, 0.6, 1, 2, 100}));
    values.push_back(::testing::PrintToString(value));
  }
  void field(std::string_view name, std::string& value, std::string_view, const Limits& limits) override {
    std::vector<std::string> others;
    for (const std::string& word : limits.words)
      if (word != value) others.push_back(word);
    add(name, true, others);
    values.push_back(value);
  }
  void field(std::string_view, std::vector<double>&, std::string_view, const Limits&) override {}
  void field(std::string_view, std::vector<std::string>&, std::string_view, const Limits&) override {}
  void begin_section(std::string_view name, std::string_view) override { prefix_ += std::string(name) + "."; }
  void end_section() override {
    prefix_.pop_back();
    prefix_.resize(prefix_.rfind('.') == std::string::npos ? 0 : prefix_.rfind('.') + 1);
  }

  std::vector<Field> fields{};
  std::vector<std::string> values{};

 private:
  static std::vector<std::string> numbers(double present, const Limits& limits, const std::vector<double>& candidates) {
    std::vector<std::string> others;
    for (const double candidate : candidates)
      if (candidate != present && violation(limits, candidate).empty())
        others.push_back(::testing::PrintToString(candidate));
    return others;
  }
  void add(std::string_view name, bool is_choice, std::vector<std::string> others) {
    fields.push_back({prefix_ + std::string(name), is_choice, std::move(others)});
  }

  std::string prefix_{};
};

std::vector<Field> fields_of(const std::string& composition, const MethodSettings& settings) {
  MethodRecipe recipe = recipe_of(composition, settings);
  Fields fields;
  recipe.fields(fields);
  return fields.fields;
}

/// Groups that make options distinguishable: all signals, branches, lone members, gains of 0, a response of one token.
const std::vector<Group>& probe_groups() {
  static const std::vector<Group> groups = [] {
    RandomStream random(71);
    auto made = testing::random_groups(
        random, {.groups = 12, .max_members = 4, .max_turns = 4, .max_tokens = 4, .columns = testing::all_columns()});
    for (Group& group : made)
      for (Tree& tree : group.trees)
        if (tree.turns.front().info_gain) tree.turns.front().info_gain = 0;
    Tree lone;
    lone.turns.push_back({.tokens = {1}, .sampled_end = 1, .spans = {{SpanKind::Action, 0, 1}}, .reward = 0.7});
    for (const Column column : testing::all_columns()) lone.columns.edit(column, 0, 1)[0] = -0.5;
    lone.leaves.push_back({.turn = 0, .score = 0.7});
    made.emplace_back().trees.push_back(lone);
    return made;
  }();
  return groups;
}

/// What a method does, in numbers and words.
struct Behaviour {
  std::vector<double> numbers{};
  std::vector<std::string> words{};

  void add(double x) { numbers.push_back(std::isnan(x) ? 12345.6789 : x); }

  bool operator==(const Behaviour& other) const {
    if (words != other.words || numbers.size() != other.numbers.size()) return false;
    for (std::size_t i = 0; i < numbers.size(); ++i)
      if (std::abs(numbers[i] - other.numbers[i]) > 1e-10 * (1 + std::abs(numbers[i]))) return false;
    return true;
  }
};

void add_credit(Behaviour& behaviour, const Method& method) {
  static const std::vector<Trajectory> all = trajectories(probe_groups());
  for (const Credit& credit : run_credit(method.credit, all))
    for (const auto* column : {&credit.advantage, &credit.weight, &credit.clip_scale, &credit.value_target})
      for (const double x : *column) behaviour.add(x);
}

/// Asks as the engine does: for the first trajectories with and without a probe, and, if there are any, for branches.
void add_branching(Behaviour& behaviour, const BranchPolicy& policy) {
  behaviour.words.push_back(policy.name());
  for (const int budget : {1, 4, 9, 16}) {
    const EntropyProbe probe{.root = 2, .tool_calls = {0.5, 1}};
    behaviour.add(policy.wants_probe() ? policy.initial(budget, probe) : policy.initial(budget));
    const auto plan = policy.expansion(budget);
    if (!plan) continue;
    behaviour.add(plan->nodes);
    behaviour.add(plan->rounds);
    for (const int leaves : plan->leaves) behaviour.add(leaves);
  }
  behaviour.add(policy.ever_branches() ? 1 : 0);
  if (!policy.ever_branches()) return;
  behaviour.add(policy.attempts());
  behaviour.add(static_cast<double>(policy.timing()));
  behaviour.add(static_cast<double>(policy.streak()));
  behaviour.add(policy.measure().tokens);
  behaviour.add(policy.measure().candidates);
  for (const double rise : {-2.0, -0.4, 0.0, 0.3, 1.5})
    for (const int consecutive : {0, 1, 4})
      for (double uniform = 0.02; uniform < 1; uniform += 0.04)
        behaviour.add(policy.branch_here({.turn_entropy = 1 + rise,
                                          .initial_entropy = 1,
                                          .trajectories = 1,
                                          .budget = 8,
                                          .consecutive = consecutive,
                                          .uniform = uniform}));
}

Behaviour behaviour_of(const MethodRecipe& recipe) {
  Method method = build_method(recipe);
  Behaviour behaviour;
  add_credit(behaviour, method);
  add_branching(behaviour, *method.branch);
  for (const bool stays : method.filter.keep(probe_groups())) behaviour.add(stays);
  behaviour.add(method.filter.max_refills);
  for (const Measurement needed : measurements(method)) behaviour.add(static_cast<double>(needed));
  behaviour.add(static_cast<double>(method.info_gain.measure));
  behaviour.add(method.info_gain.query_baseline);
  behaviour.add(method.continuations);
  Fields objective;
  method.objective.fields(objective);
  for (std::size_t f = 0; f < objective.fields.size(); ++f) {
    const bool acts =
        method.objective.adaptive_entropy.enabled || !objective.fields[f].key.starts_with("adaptive_entropy.");
    if (acts) behaviour.words.push_back(objective.fields[f].key + " " + objective.values[f]);
  }
  return behaviour;
}

/// True if some other value of the field changes what the method does from `before`.
bool has_effect(const std::string& composition, const MethodSettings& settings, const Field& field,
                const Behaviour& before) {
  return std::any_of(field.others.begin(), field.others.end(), [&](const std::string& other) {
    MethodSettings changed = settings;
    changed[field.key] = other;
    return !(behaviour_of(recipe_of(composition, changed)) == before);
  });
}

/// Problems of the keys that follow `prefix`, with these settings. A preset is checked alone: next to other keys, it
/// could set exactly the same values.
std::vector<std::string> wrong_keys(const std::string& composition, const std::string& prefix,
                                    const MethodSettings& settings, bool alone) {
  std::vector<std::string> wrong;
  const MethodRecipe recipe = recipe_of(composition, settings);
  const UnreadKeys unread = recipe.unread_keys();
  const Behaviour before = behaviour_of(recipe);
  for (const Field& field : fields_of(composition, settings)) {
    if (!field.key.starts_with(prefix) || field.others.empty()) continue;
    if (!alone && field.key == prefix + "preset") continue;
    const bool effect = has_effect(composition, settings, field, before);
    if (effect && unread.contains(field.key)) wrong.push_back(field.key + " is refused though it has an effect");
    if (!effect && !unread.contains(field.key)) wrong.push_back(field.key + " has no effect and is not refused");
  }
  return wrong;
}

/// Numbers at which a method's other keys are distinguishable: the defaults are neutral, or meant for longer responses.
MethodSettings telling_numbers(const std::string& name) {
  if (name == "ppo") return {{"ppo.lambda", "0.9"}};
  if (name == "dapo") return {{"dapo.reward.overlong_limit", "30"}, {"dapo.reward.overlong_buffer", "10"}};
  return {};
}

/// Every key with all others at their defaults, and with every other value of each bool and word.
void expect_keys_count(const std::string& composition, const std::string& name) {
  const std::string prefix = name + ".";
  const MethodSettings telling = telling_numbers(name);
  EXPECT_THAT(wrong_keys(composition, prefix, telling, true), ::testing::IsEmpty()) << composition;
  for (const Field& choice : fields_of(composition, {})) {
    if (!choice.is_choice || !choice.key.starts_with(prefix)) continue;
    for (const std::string& other : choice.others) {
      // Subtracting a mean has no effect if a mean is subtracted anyway, and then it does not matter whose.
      if (choice.key == prefix + "reward.scaling" && other == "mean") continue;
      MethodSettings settings = telling;
      settings[choice.key] = other;
      // When scaled within its group, a lone trajectory has reward 0, whatever a group of one gets.
      if (choice.key == prefix + "reward.scaling") settings[prefix + "reward.scaling_over"] = "batch";
      EXPECT_THAT(wrong_keys(composition, prefix, settings, false), ::testing::IsEmpty())
          << composition << " with " << choice.key << " " << other;
    }
  }
}

TEST(Keys, OfEveryMethodAloneHaveAnEffectOrAreRefused) {
  for (const MethodEntry& entry : methods())
    if (entry.is_base()) expect_keys_count(std::string(entry.name), std::string(entry.name));
}

TEST(Keys, OfEveryAddOnAfterABaseHaveAnEffectOrAreRefused) {
  for (const MethodEntry& entry : methods())
    if (entry.is_add_on()) expect_keys_count("grpo + " + std::string(entry.name), std::string(entry.name));
}

TEST(Keys, ThatOnlyABaseReadsAreRefusedAfterAnotherBaseWithTheReason) {
  int refused = 0;
  for (const MethodEntry& entry : methods()) {
    if (!entry.is_base() || !entry.is_add_on()) continue;
    const std::string after = "rloo + " + std::string(entry.name);
    const UnreadKeys unread = recipe_of(after, {}).unread_keys();
    std::set<std::string> known;
    for (const Field& field : fields_of(after, {})) known.insert(field.key);
    for (const Field& field : fields_of(std::string(entry.name), {})) {
      EXPECT_TRUE(known.contains(field.key) || unread.contains(field.key)) << field.key;
      refused += known.contains(field.key) ? 0 : 1;
    }
    for (const UnreadKey& key : unread)
      EXPECT_TRUE(known.contains(key.key) || key.why.find("the base is rloo") != std::string::npos) << key.key;
  }
  EXPECT_GT(refused, 30);
}

}  // namespace
}  // namespace carnot
