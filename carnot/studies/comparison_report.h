// studies/comparison_report.h -- a comparison as JSON, as Markdown and as a page: its tables, differences to the base,
// and curves by training step.
#pragma once

#include <filesystem>
#include <string>

#include "carnot/studies/comparison_results.h"

namespace carnot {

/// Everything but seconds, so that the text depends on the runs alone and not on the machine's load.
std::string comparison_json(const Comparison& comparison);

std::string comparison_markdown(const Comparison& comparison);

/// comparison.json, comparison.md and report.html in `output`.
Status write_comparison(const Comparison& comparison, const std::filesystem::path& output);

/// A page of view/chart/page.h.
std::string comparison_html(const Comparison& comparison);

}  // namespace carnot
