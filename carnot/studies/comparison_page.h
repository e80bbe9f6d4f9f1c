// studies/comparison_page.h -- a comparison as a page: its tables, differences to the base, and curves by training
// step.
#pragma once

#include <string>

#include "carnot/studies/comparison_results.h"

namespace carnot {

/// A page of view/chart/page.h.
std::string comparison_html(const Comparison& comparison);

}  // namespace carnot
