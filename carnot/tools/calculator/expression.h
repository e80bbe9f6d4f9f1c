// tools/calculator/expression.h -- the value of an arithmetic expression, for a policy that calculates.
#pragma once

#include <string>
#include <string_view>

#include "carnot/core/base/result.h"

namespace carnot {

/// The value of numbers (12, 1_000, 0.5, 1.5e3), pi, e, + - * / // % and ** or ^ with Python's meaning and precedence,
/// brackets, and the functions that calculator_functions() names. The error says what was expected and where, or that
/// the value is not finite. An expression of more than 10,000 bytes, or of more than 100 levels, is refused.
Result<double> calculate(std::string_view expression);

/// "abs, ceil, cos, ...".
std::string calculator_functions();

/// The shortest text that reads back as the number; integers up to 2^53 without a point.
std::string exact_text(double value);

}  // namespace carnot
