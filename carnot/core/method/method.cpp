#include "carnot/core/method/method.h"

#include <algorithm>
#include <set>

#include "carnot/core/base/limits.h"
#include "carnot/core/base/nearest_word.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/credit/reward.h"

namespace carnot {
namespace {

std::vector<std::string> split_at_plus(std::string_view composition) {
  std::vector<std::string> names;
  while (true) {
    const auto plus = composition.find('+');
    names.emplace_back(trim(composition.substr(0, plus)));
    if (plus == std::string_view::npos) return names;
    composition.remove_prefix(plus + 1);
  }
}

const MethodEntry* find_method(std::string_view name) {
  const auto& all = methods();
  const auto found = std::find_if(all.begin(), all.end(), [&](const MethodEntry& entry) { return entry.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::vector<std::string> known_methods() {
  std::vector<std::string> names;
  for (const MethodEntry& entry : methods()) names.emplace_back(entry.name);
  return names;
}

/// The keys of a part by name, and which of them nothing reads.
struct ListedKeys {
  std::vector<std::string> names{};
  UnreadKeys unread{};
  std::span<const PresetEntry> presets{};
};

ListedKeys list_keys(MethodOptions& part, bool is_base) {
  ListedKeys listed;
  listed.names = field_names([&](FieldVisitor& visit) {
    MethodKeys keys(visit, is_base);
    part.keys(keys);
    listed.unread = keys.unread();
    listed.presets = keys.presets();
  });
  return listed;
}

bool holds(std::span<const std::string> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Methods that exclude each other in a composition.
struct Rivals {
  std::vector<std::string_view> names{};
  std::string_view reason{};
};

const std::vector<Rivals>& rivals() {
  static const std::vector<Rivals> all = {
      {.names = {"arpo", "tree_grpo", "aepo"}, .reason = "both decide where rollouts branch"},
      {.names = {"igpo", "a2tgpo"}, .reason = "both turn information gains into credit"},
  };
  return all;
}

bool holds(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool has_rule(const Method& method, std::string_view name) {
  return std::any_of(method.credit.begin(), method.credit.end(),
                     [&](const CreditRule& rule) { return rule.name == name; });
}

/// A rule that adds credit after a modulator has scaled the credit.
std::string credit_behind_a_modulator(const Method& method) {
  const CreditRule* modulator = nullptr;
  for (const CreditRule& rule : method.credit) {
    if (rule.kind == RuleKind::Modulator) modulator = &rule;
    if (rule.kind == RuleKind::Base && modulator != nullptr)
      return rule.name + " adds credit after " + modulator->name +
             ", which does not see it; name the method that adds credit first";
  }
  return "";
}

}  // namespace

bool needs_siblings(const Method& method) {
  return has_base(method) && std::ranges::all_of(method.credit, [](const CreditRule& rule) {
           return rule.kind != RuleKind::Base || rule.needs_siblings;
         });
}

std::set<Measurement> measurements(const Method& method) {
  std::set<Measurement> needed;
  const auto add = [&](std::span<const Column> columns) {
    for (const Column column : columns)
      if (const auto measurement = measurement_of(column)) needed.insert(*measurement);
  };
  for (const CreditRule& rule : credit_chain(method, method.objective.kl_in_reward)) {
    add(rule.columns);
    if (rule.info_gain) needed.insert(Measurement::InfoGain);
  }
  add(columns_read(method.objective));
  return needed;
}

std::vector<CreditRule> credit_chain(const Method& method, double coefficient) {
  std::vector<CreditRule> chain;
  if (coefficient != 0) chain.push_back(kl_in_reward(coefficient));
  chain.insert(chain.end(), method.credit.begin(), method.credit.end());
  return chain;
}

std::span<const PresetEntry> MethodEntry::presets() const { return list_keys(*make(), true).presets; }

void MethodRecipe::fields(FieldVisitor& visit) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const MethodEntry* entry = find_method(names[i]);
    visit.begin_section(names[i], entry ? entry->summary : std::string_view());
    part_fields(i, visit);
    visit.end_section();
  }
}

void MethodRecipe::part_fields(std::size_t i, FieldVisitor& visit) {
  MethodKeys keys(visit, i == 0);
  parts[i]->keys(keys);
}

bool MethodRecipe::reads(std::string_view option) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const ListedKeys keys = list_keys(*parts[i], i == 0);
    if (holds(keys.names, option) && !keys.unread.contains(option)) return true;
  }
  return false;
}

UnreadKeys MethodRecipe::unread_keys() const {
  UnreadKeys unread;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    UnreadKeys of_part;
    const ListedKeys keys = list_keys(*parts[i], i == 0);
    for (const std::string& name : list_keys(*parts[i], true).names)
      if (!holds(keys.names, name))
        of_part.add({name}, "the base is " + names[0] + "; " + names[i] + " comes after it");
    for (const UnreadKey& key : keys.unread)
      if (!of_part.contains(key.key)) of_part.add({key.key}, key.why);
    unread.add(of_part, names[i]);
  }
  return unread;
}

Result<MethodRecipe> parse_method(std::string_view composition) {
  if (std::count(composition.begin(), composition.end(), '+') >= static_cast<std::ptrdiff_t>(kMaxMethods))
    return Error{"method: has more than " + std::to_string(kMaxMethods) + " parts"};
  const std::vector<std::string> names = split_at_plus(composition);
  std::vector<const MethodEntry*> entries;
  std::vector<std::string> problems;
  for (const std::string& name : names) {
    entries.push_back(find_method(name));
    if (!entries.back()) problems.push_back(unknown_word("method", name, known_methods()));
  }
  if (problems.empty()) problems = composition_errors(entries);
  if (!problems.empty()) return join_errors(problems);

  MethodRecipe recipe{.names = names};
  for (const MethodEntry* entry : entries) recipe.parts.push_back(entry->make());
  return recipe;
}

Method build_method(const MethodRecipe& recipe, const std::function<void(Method&)>& adjust) {
  Method method;
  for (std::size_t i = 0; i < recipe.parts.size(); ++i) {
    method.name += (i == 0 ? "" : " + ") + recipe.names[i];
    recipe.parts[i]->compose(method);
  }
  if (adjust) adjust(method);
  method.problems = composition_problems(method);
  for (std::string& warning : composition_warnings(method)) method.warnings.push_back(std::move(warning));
  return method;
}

std::vector<std::string> composition_errors(std::span<const MethodEntry* const> entries) {
  std::vector<std::string> problems;
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string name(entries[i]->name);
    const std::string start = "'" + name + "' ";
    if (i == 0 && !entries[i]->is_base())
      problems.push_back(start + "is an add-on; expected a base before it, as in 'grpo + " + name + "'");
    if (!seen.insert(entries[i]->name).second)
      problems.push_back(start + "appears twice in the composition");
    else if (i > 0 && !entries[i]->is_add_on())
      problems.push_back(start + "is a second base; expected one base, then add-ons");
  }
  for (const Rivals& one : rivals()) {
    std::string present;
    int count = 0;
    for (std::string_view name : seen) {
      if (!holds(one.names, name)) continue;
      present += (count++ == 0 ? "'" : "' and '") + std::string(name);
    }
    if (count > 1) problems.push_back(present + "' cannot be combined: " + std::string(one.reason));
  }
  return problems;
}

std::vector<SettingProblem> composition_problems(const Method& method) {
  const bool has_targets = std::any_of(method.credit.begin(), method.credit.end(),
                                       [](const CreditRule& rule) { return rule.sets_value_target; });
  if (method.objective.value_coefficient <= 0 || has_targets) return {};
  return {{.key = "objective.value_coefficient",
           .why = "the critic's loss needs value targets, and no rule of " + method.name +
                  " sets any; expected 0, or a method with GAE (ppo, starpo_s)"}};
}

std::vector<std::string> composition_warnings(const Method& method) {
  std::vector<std::string> warnings;
  const ObjectiveOptions& objective = method.objective;
  const bool branches = method.branch && method.branch->ever_branches();
  const auto warn = [&](bool when, const char* what) {
    if (when) warnings.emplace_back(what);
  };
  warn(has_rule(method, "entropy_modulate") && objective.entropy_scale > 0,
       "aem strengthens responses of low entropy, aepo's entropy_scale tokens of high entropy: opposite intentions");
  warn(has_rule(method, "span_weight") && objective.reduction != Reduction::TokenMean,
       "actfocus is defined for reduction token_mean, where weights also count in the denominator; other "
       "reductions normalise per trajectory or not at all");
  warn(branches && (has_rule(method, "turn_gain") || has_rule(method, "token_gain")),
       "gains of turns that branches share enter igpo's statistics once per branch");
  warn(branches && has_rule(method, "step_group"),
       "turns that branches share enter gigpo's step groups once per branch");
  warn(objective.kl_coefficient > 0 && objective.kl_estimator == KlEstimator::K1 && !objective.kl_straight_through,
       "k1 as a loss has no expected gradient towards the reference: it does not regularise");
  warn(measurements(method).contains(Measurement::Values) && objective.value_coefficient == 0,
       "value_coefficient is 0: the critic that gae reads is never trained");
  warn(has_rule(method, "turn_group_gain") && objective.ratio == RatioLevel::Sequence,
       "a2tgpo widens the clip range turn by turn; with a sequence ratio the tokens of one ratio get different ranges");
  if (std::string order = credit_behind_a_modulator(method); !order.empty()) warnings.push_back(std::move(order));
  return warnings;
}

}  // namespace carnot
