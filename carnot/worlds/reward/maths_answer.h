// worlds/reward/maths_answer.h -- the answer of a worked solution, and whether two answers are the same.
//
// Two ways, as the published recipes have them. GSM8K's in verl: the number after `####`, compared as text. MATH's
// (Hendrycks et al., arXiv:2103.03874): the content of \boxed{}, brought into a normal form; on top of that, numbers
// are compared as numbers, so that 0.5, 1/2 and \frac{1}{2} are one answer. There is no computer algebra: `x+1` and
// `1+x` differ. Every function takes any bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace carnot {

/// The number after the last `#### ` in the last 300 characters, without commas: -?[0-9.,]+ as verl matches it.
std::optional<std::string> marked_answer(std::string_view response);

/// The last run of -?[0-9.,]+ with a digit in the last 300 characters, without commas and without periods at its end.
std::optional<std::string> last_number(std::string_view response);

/// What the last \boxed{} holds; if there is none, the last \( \) or \[ \] that no number follows, else the last
/// number, fraction or \frac of the text, with its sign.
std::optional<std::string> boxed_or_last_expression(std::string_view response);

/// Equal normal forms, or equal values: integers exactly, others to six decimals, below 1 to six significant digits.
/// Lists are compared part by part, `\{ \}` and lists without brackets in any order. Where one side alone has a percent
/// sign, it may also mean a hundredth. Nothing equals an empty answer.
bool maths_equal(std::string_view prediction, std::string_view gold);

/// One text for all answers that are the same number to six decimals; else the normal form. For votes.
std::string canonical_maths(std::string_view answer);

}  // namespace carnot
