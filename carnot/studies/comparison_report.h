// studies/comparison_report.h -- a comparison as JSON, as Markdown and as a page: its tables, differences to the base,
// and curves by training step.
#pragma once

#include <filesystem>
#include <string>

#include "carnot/studies/comparison_results.h"
#include "carnot/view/chart/table.h"

namespace carnot {

/// A row per method: means over seeds with their intervals, and the paired difference to the base.
Table comparison_table(const Comparison& comparison);

/// The best evaluation of each run next to its last one. REQUIRES: some run was evaluated while it trained.
Table peak_table(const Comparison& comparison);

/// Everything but seconds, so that the text depends on the runs alone and not on the machine's load.
std::string comparison_json(const Comparison& comparison);

std::string comparison_markdown(const Comparison& comparison);

/// comparison.json, comparison.md and report.html in `output`.
Status write_comparison(const Comparison& comparison, const std::filesystem::path& output);

/// A page of view/chart/page.h.
std::string comparison_html(const Comparison& comparison);

}  // namespace carnot
