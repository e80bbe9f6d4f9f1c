// testing/well_formed.h -- whether markup is well-formed: for tests of what writes SVG and HTML.
#pragma once

#include <string>
#include <string_view>

namespace carnot::testing {

/// Empty where every element is closed in order, every attribute is quoted and named once, and nothing is left
/// unescaped; otherwise the first problem. Knows the doctype and HTML's <meta>, which is never closed.
std::string problem_with_markup(std::string_view text);

}  // namespace carnot::testing
