// chart/page.h -- a report as one self-contained HTML file: no scripts, no outside resources.
//
//   Page page("GRPO against AEM");
//   page.paragraph("Five seeds each.").table(results).heading("Curves").figure(svg(plot), "Mean over seeds.");
//   write_file_atomically("report.html", page.html());
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "carnot/chart/table.h"

namespace carnot {

/// Texts are escaped; what they hold is shown as it is.
class Page {
 public:
  explicit Page(std::string title) : title_(std::move(title)) {}

  /// `level` 2 for sections, 3 inside them.
  Page& heading(std::string_view text, int level = 2);
  Page& paragraph(std::string_view text);
  Page& list(const std::vector<std::string>& items);
  Page& table(const Table& table);
  /// A drawing of this room (svg(...)), which goes in as it is, and a line below it.
  Page& figure(std::string_view svg, std::string_view caption = "");
  /// Many small drawings side by side.
  Page& gallery(const std::vector<std::string>& svgs, std::string_view caption = "");
  /// Text with its line breaks, in letters of equal width.
  Page& preformatted(std::string_view text);

  std::string html() const;

 private:
  std::string title_;
  std::string body_{};
};

}  // namespace carnot
