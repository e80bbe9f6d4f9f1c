// reward/maths_answer.h -- the answer of a worked solution, and whether two answers are the same.
//
// Two ways, as the published recipes have them. GSM8K's in verl: the number after `####`, compared as text. MATH's
// (Hendrycks et al., arXiv:2103.03874): the content of \boxed{}, brought into a normal form; on top of that, numbers
// are compared as numbers, so that 0.5, 1/2 and \frac{1}{2} are one answer. There is no computer algebra: `x+1` and
// `1+x` differ. Every function takes any bytes.
#pragma once

#include <cstddef>
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

/// The answer as MATH's graders write it. Gone are: delimiters of formulas ($, \( \), \[ \]) and a period at the end;
/// \left, \right, spacing commands and blanks; currency, percent and degree signs; `x =` before the answer; units
/// after it (\text{ cm}^2, "dollars"); \text{} around it; separators of thousands; redundant zeros (18.00, 007,
/// .5).
/// \dfrac, \tfrac, 1/2, \frac12 become \frac{1}{2}, \sqrt2 becomes \sqrt{2}, 0.5 becomes \frac{1}{2}.
/// Of more than kLongestMathsAnswer bytes only white space at the ends goes.
inline constexpr std::size_t kLongestMathsAnswer = 2000;
std::string normalize_maths(std::string_view answer);

/// The value of an expression of numbers: decimals, + - * / ^, \frac, \sqrt, mixed numbers, \pi, brackets, 1.5e3.
/// None if it contains anything else, or where the value is not finite. `normal` is what normalize_maths() returns.
std::optional<double> maths_value(std::string_view normal);

/// Equal normal forms, or equal values: integers exactly, others to six decimals, below 1 to six significant digits.
/// Lists are compared part by part, `\{ \}` and lists without brackets in any order. Where one side alone has a percent
/// sign, it may also mean a hundredth. Nothing equals an empty answer.
bool maths_equal(std::string_view prediction, std::string_view gold);

/// One text for all answers that are the same number, as far as six decimals tell; else the normal form. For votes.
std::string canonical_maths(std::string_view answer);

}  // namespace carnot
