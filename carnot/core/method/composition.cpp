#include "carnot/core/method/composition.h"

#include <algorithm>
#include <set>

namespace carnot {
namespace {

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

std::vector<std::string> known_methods() {
  std::vector<std::string> names;
  for (const MethodEntry& entry : methods()) names.emplace_back(entry.name);
  return names;
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
