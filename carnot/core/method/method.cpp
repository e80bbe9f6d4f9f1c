#include "carnot/core/method/method.h"

#include <algorithm>

#include "carnot/core/base/limits.h"
#include "carnot/core/base/nearest_word.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/credit/reward.h"
#include "carnot/core/method/composition.h"

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

}  // namespace carnot
