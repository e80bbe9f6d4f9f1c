// worlds/alfworld/pddl_problem.h -- a problem in PDDL, split into its parts.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "carnot/core/base/result.h"

namespace carnot {

/// A predicate with its arguments.
struct PddlFact {
  std::string_view predicate;
  std::array<std::string_view, 2> arguments;
  std::size_t count = 0;
};

/// A problem's parts, all of them views into its text in lower case.
struct PddlProblem {
  std::unordered_map<std::string_view, std::string_view> types;  ///< of declared ids
  std::vector<PddlFact> facts;
  std::vector<std::string_view> goal;  ///< its words
};

/// The brackets and words of a PDDL text, in order.
std::vector<std::string_view> pddl_words(std::string_view text);

/// A word for messages: quoted, cut, and printable.
std::string quoted_word(std::string_view word);

/// Splits `text`, which is in lower case and must outlive the result. The error names line, what was found and what was
/// expected.
Result<PddlProblem> parse_pddl_problem(std::string_view text, const std::string& name);

}  // namespace carnot
