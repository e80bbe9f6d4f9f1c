// worlds/reward/maths_value.h -- the value of an answer that is an expression of numbers.
#pragma once

#include <optional>
#include <string_view>

namespace carnot {

/// The value of an expression of numbers: decimals, + - * / ^, \frac, \sqrt, mixed numbers, \pi, brackets, 1.5e3.
/// None if it contains anything else, or where the value is not finite. `normal` is what normalize_maths() returns.
std::optional<double> maths_value(std::string_view normal);

}  // namespace carnot
