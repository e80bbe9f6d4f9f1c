// view/chart/table.h -- a table of numbers and words: as Markdown, as JSON (view/chart/json.h), and what figures are
// drawn from.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace carnot {

/// A number or a word.
using Cell = std::variant<double, std::string>;

template <class Value>
Cell cell_of(const Value& value) {
  if constexpr (std::is_arithmetic_v<Value>) {
    return static_cast<double>(value);
  } else {
    return Cell(value);
  }
}
inline Cell cell_of(std::string_view value) { return std::string(value); }

struct Table {
  std::string name{};
  std::vector<std::string> columns{};
  std::vector<std::vector<Cell>> rows{};  ///< a cell per column

  /// Adds a row. REQUIRES: a value per column.
  template <class... Values>
  void add(const Values&... values) {
    add_row({cell_of(values)...});
  }
  void add_row(std::vector<Cell> row);

  /// REQUIRES: the column exists.
  std::size_t index_of(const std::string& column) const;

  /// The rows that hold `cell` in `column`.
  Table only(const std::string& column, const Cell& cell) const;

  /// A column. REQUIRES: it holds numbers.
  std::vector<double> numbers(const std::string& column) const;
};

/// A number for people, four significant digits: "0.1234", "1234000", "1.2e-05"; "-" if it is not finite.
std::string number_text(double value);

/// A pipe table, columns padded so that the text can be read as well. The first column holds names.
std::string markdown(const Table& table);

}  // namespace carnot
