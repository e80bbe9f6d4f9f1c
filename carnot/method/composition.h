// method/composition.h -- which methods can be combined, and which work against each other.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "carnot/method/method.h"

namespace carnot {

/// ppo, grpo, ...
std::vector<std::string> known_methods();

/// What forbids this sequence of methods; a sentence each.
std::vector<std::string> composition_errors(std::span<const MethodEntry* const> entries);

/// Settings of the objective for which the method's rules lack something. Reads slots only, so that it holds for any
/// composition.
std::vector<SettingProblem> composition_problems(const Method& method);

/// What is possible but works against itself, with the reason. Reads slots only, so that it holds for any
/// composition.
std::vector<std::string> composition_warnings(const Method& method);

}  // namespace carnot
