#include "carnot/method/composition.h"

#include <set>

namespace carnot {

std::string known_methods() {
  std::string names;
  for (const MethodEntry& entry : methods()) names += (names.empty() ? "" : ", ") + std::string(entry.name);
  return names;
}

std::vector<std::string> composition_errors(std::span<const MethodEntry* const> entries) {
  std::vector<std::string> problems;
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string name = "method: '" + std::string(entries[i]->name) + "' ";
    if (!seen.insert(entries[i]->name).second) problems.push_back(name + "stands twice in the composition");
    if (i == 0 && !entries[i]->is_base)
      problems.push_back(name + "is an add-on; expected a base before it, as in 'grpo + " + std::string(entries[i]->name) + "'");
    if (i > 0 && !entries[i]->is_add_on)
      problems.push_back(name + "is a second base; expected one base, then add-ons");
  }
  return problems;
}

std::vector<std::string> composition_warnings(const Method&) { return {}; }

}  // namespace carnot
