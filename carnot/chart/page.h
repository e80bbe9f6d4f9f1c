// chart/page.h -- a report as one HTML file that needs nothing else and loads nothing: the report as JSON, and a script
// that draws it (page.js, with uPlot).
#pragma once

#include <string>
#include <string_view>

namespace carnot {

/// The page of a report. Keys of its JSON object, each of them optional:
///   "title", "introduction": text
///   "findings": [{column: value}], the table at the top
///   "notes": [text], "sections": [{"title", "lines": [text]}]
///   "tables", "figures": as chart/json.h writes them
///   "options": {key: value}
std::string page_html(std::string_view report);

}  // namespace carnot
