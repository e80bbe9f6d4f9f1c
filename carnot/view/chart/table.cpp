#include "carnot/view/chart/table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "carnot/core/base/check.h"
#include "carnot/core/base/utf8.h"

namespace carnot {
namespace {

std::string text_of(const Cell& cell) {
  const auto* text = std::get_if<std::string>(&cell);
  return text != nullptr ? *text : number_text(std::get<double>(cell));
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

void Table::add_row(std::vector<Cell> row) {
  CARNOT_CHECK_EQ(row.size(), columns.size());
  rows.push_back(std::move(row));
}

std::size_t Table::index_of(const std::string& column) const {
  const auto found = std::find(columns.begin(), columns.end(), column);
  CARNOT_CHECK(found != columns.end(), name + " has no column " + column);
  return static_cast<std::size_t>(found - columns.begin());
}

Table Table::only(const std::string& column, const Cell& cell) const {
  Table out = *this;
  const std::size_t at = index_of(column);
  std::erase_if(out.rows, [&](const auto& row) { return row[at] != cell; });
  return out;
}

std::vector<double> Table::numbers(const std::string& column) const {
  std::vector<double> values;
  const std::size_t at = index_of(column);
  for (const auto& row : rows) values.push_back(std::get<double>(row[at]));
  return values;
}

std::string number_text(double value) {
  if (!std::isfinite(value)) return "-";
  if (value == 0) return "0";
  const double size = std::abs(value);
  const bool is_plain = size >= 1e-4 && size < 1e7;
  const int decimals = std::max(0, 3 - static_cast<int>(std::floor(std::log10(size))));
  std::array<char, 64> text;
  char* const end = text.data() + text.size();
  const auto written = is_plain ? std::to_chars(text.data(), end, value, std::chars_format::fixed, decimals)
                                : std::to_chars(text.data(), end, value, std::chars_format::general, 4);
  std::string digits(text.data(), written.ptr);
  if (!is_plain || decimals == 0) return digits;
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits.pop_back();
  return digits;
}

std::string markdown(const Table& table) {
  std::vector<std::vector<std::string>> lines(table.rows.size() + 1);
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    lines[0].push_back(markdown_cell(table.columns[c]));
    for (std::size_t r = 0; r < table.rows.size(); ++r)
      lines[r + 1].push_back(markdown_cell(text_of(table.rows[r][c])));
    widths.push_back(3);
    for (const auto& line : lines) widths[c] = std::max(widths[c], count_characters(line[c]));
  }
  std::string text;
  for (std::size_t r = 0; r < lines.size(); ++r) {
    for (std::size_t c = 0; c < widths.size(); ++c)
      text += "| " + lines[r][c] + std::string(widths[c] - count_characters(lines[r][c]) + 1, ' ');
    text += "|\n";
    if (r > 0) continue;
    for (std::size_t c = 0; c < widths.size(); ++c)
      text += '|' + std::string(widths[c] + 1, '-') + (c == 0 ? "-" : ":");
    text += "|\n";
  }
  return text;
}

}  // namespace carnot
