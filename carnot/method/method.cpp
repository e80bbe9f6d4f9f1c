#include "carnot/method/method.h"

#include <algorithm>

#include "carnot/base/limits.h"
#include "carnot/base/nearest_word.h"
#include "carnot/base/strings.h"
#include "carnot/credit/reward.h"
#include "carnot/method/composition.h"

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

bool reads_values(const Method& method) {
  return std::any_of(method.credit.begin(), method.credit.end(), [](const CreditRule& rule) {
    return std::find(rule.columns.begin(), rule.columns.end(), Column::Value) != rule.columns.end();
  });
}

struct BaseFields {
  MethodOptions& part;
  void fields(FieldVisitor& visit) { part.base_fields(visit); }
};

}  // namespace

std::set<Signal> required_signals(const Method& method) {
  std::set<Signal> signals = method.signals;
  if (method.objective.kl_coefficient > 0 || method.objective.kl_in_reward > 0) signals.insert(Signal::Reference);
  if (method.objective.value_coefficient > 0 || reads_values(method)) signals.insert(Signal::Value);
  return signals;
}

std::vector<CreditRule> credit_chain(const Method& method, double coefficient) {
  std::vector<CreditRule> chain;
  if (coefficient != 0) chain.push_back(kl_in_reward(coefficient));
  chain.insert(chain.end(), method.credit.begin(), method.credit.end());
  return chain;
}

void MethodRecipe::fields(FieldVisitor& visit) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const MethodEntry* entry = find_method(names[i]);
    visit.begin_section(names[i], entry ? entry->summary : std::string_view());
    part_fields(i, visit);
    visit.end_section();
  }
}

void MethodRecipe::part_fields(std::size_t i, FieldVisitor& visit) {
  parts[i]->fields(visit);
  if (i == 0) parts[i]->base_fields(visit);
}

bool MethodRecipe::reads(std::string_view option) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto names_of_part = field_names([&](FieldVisitor& visit) { part_fields(i, visit); });
    const bool has = std::find(names_of_part.begin(), names_of_part.end(), option) != names_of_part.end();
    if (has && !parts[i]->unread_keys().contains(option)) return true;
  }
  return false;
}

UnreadKeys MethodRecipe::unread_keys() const {
  UnreadKeys unread;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    UnreadKeys of_part;
    if (i > 0)
      of_part.add_all(BaseFields{*parts[i]}, "", "the base is " + names[0] + "; " + names[i] + " stands behind it");
    for (const UnreadKey& key : parts[i]->unread_keys())
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

}  // namespace carnot
