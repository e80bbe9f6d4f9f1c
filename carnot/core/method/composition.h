// method/composition.h -- which methods can be combined, and which combinations work against each other.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "carnot/core/method/method.h"

namespace carnot {

/// The names of all methods: ppo, grpo, ...
std::vector<std::string> known_methods();

/// Why this sequence of methods is not allowed; one sentence per problem.
std::vector<std::string> composition_errors(std::span<const MethodEntry* const> entries);

/// Settings of the objective that the method's rules cannot support. Reads only the slots, so it works for any
/// composition.
std::vector<SettingProblem> composition_problems(const Method& method);

/// Combinations that are possible but work against each other, with the reason. Reads only the slots, so it works for
/// any composition.
std::vector<std::string> composition_warnings(const Method& method);

}  // namespace carnot
