#include "carnot/chart/table.h"

#include <algorithm>

#include "carnot/base/check.h"
#include "carnot/base/utf8.h"
#include "carnot/chart/svg.h"

namespace carnot {
namespace {

std::string html_row(const std::vector<std::string>& cells, const std::string& element) {
  std::string text = "<tr>";
  for (const std::string& cell : cells) text += '<' + element + '>' + escaped(cell) + "</" + element + '>';
  return text + "</tr>\n";
}

/// A cell of a pipe table cannot hold its separators.
std::string markdown_cell(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

}  // namespace

std::string html(const Table& table) {
  std::string text = "<table>\n<thead>" + html_row(table.columns, "th") + "</thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    CARNOT_CHECK_EQ(row.size(), table.columns.size());
    text += html_row(row, "td");
  }
  return text + "</tbody>\n</table>\n";
}

std::string markdown(const Table& table) {
  std::vector<std::vector<std::string>> lines{table.columns};
  lines.insert(lines.end(), table.rows.begin(), table.rows.end());
  std::vector<std::size_t> widths(table.columns.size(), 3);
  for (auto& line : lines) {
    CARNOT_CHECK_EQ(line.size(), table.columns.size());
    for (std::size_t i = 0; i < line.size(); ++i) {
      line[i] = markdown_cell(line[i]);
      widths[i] = std::max(widths[i], count_characters(line[i]));
    }
  }
  std::string text;
  for (std::size_t r = 0; r < lines.size(); ++r) {
    for (std::size_t i = 0; i < widths.size(); ++i)
      text += "| " + lines[r][i] + std::string(widths[i] - count_characters(lines[r][i]) + 1, ' ');
    text += "|\n";
    if (r > 0) continue;
    for (std::size_t i = 0; i < widths.size(); ++i)
      text += '|' + std::string(widths[i] + 1, '-') + (i == 0 ? "-" : ":");
    text += "|\n";
  }
  return text;
}

}  // namespace carnot
