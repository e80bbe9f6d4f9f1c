// view/chart/page.h -- a report as one HTML file that needs nothing else and loads nothing: the report as JSON, and a
// script that draws it (page.js, with uPlot).
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace carnot {

/// What a page of data and a script is made of.
struct HtmlPage {
  std::string_view style{};
  std::string_view data_id{};  ///< of the element that holds the data
  std::string_view data{};     ///< JSON; whatever its texts say, they end no element
  std::string_view script{};
  bool served = false;  ///< by a program that the page may ask
  /// Further JSON, each in an element of the class `more` after the script: what was before is shown while it loads.
  std::span<const std::string> more{};
};

/// The page. It may neither load anything nor send anything, except to the program that serves it.
std::string html_page(const HtmlPage& page);

/// The page of a report. Keys of its JSON object, each of them optional:
///   "title", "introduction": text
///   "findings": [{column: value}], the table at the top
///   "notes": [text], "sections": [{"title", "lines": [text]}]
///   "tables", "figures": as view/chart/json.h writes them
///   "options": {key: value}
std::string page_html(std::string_view report);

}  // namespace carnot
