// worlds/reward/maths_normal_form.h -- a mathematical answer in the normal form of MATH's graders.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace carnot {

/// The answer as MATH's graders write it. Gone are: delimiters of formulas ($, \( \), \[ \]) and a period at the end;
/// \left, \right, spacing commands and blanks; currency, percent and degree signs; `x =` before the answer; units
/// after it (\text{ cm}^2, "dollars"); \text{} around it; separators of thousands; redundant zeros (18.00, 007,
/// .5).
/// \dfrac, \tfrac, 1/2, \frac12 become \frac{1}{2}, \sqrt2 becomes \sqrt{2}, 0.5 becomes \frac{1}{2}.
/// Of more than kLongestMathsAnswer bytes only white space at the ends goes.
inline constexpr std::size_t kLongestMathsAnswer = 2000;
std::string normalize_maths(std::string_view answer);

}  // namespace carnot
