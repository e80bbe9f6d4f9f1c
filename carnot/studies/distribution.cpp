#include "carnot/studies/distribution.h"

#include <algorithm>
#include <cmath>

#include "carnot/core/base/check.h"
#include "carnot/core/base/statistics.h"
#include "carnot/studies/correlation.h"

namespace carnot {
namespace {

double quantile_of_sorted(std::span<const double> sorted, double q) {
  const double place = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

double quantile(std::span<const double> values, double q) {
  CARNOT_CHECK(!values.empty(), "a quantile of something");
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return quantile_of_sorted(sorted, q);
}

std::vector<int> quantile_bins(std::span<const double> values, int bins) {
  std::vector<int> out;
  for (const double rank : ranks(values))
    out.push_back(static_cast<int>((rank - 0.5) / static_cast<double>(values.size()) * bins));
  return out;
}

std::vector<std::string> distribution_columns() {
  return {"n", "mean", "deviation", "minimum", "25 %", "median", "75 %", "maximum"};
}

std::vector<Cell> distribution_cells(std::span<const double> values) {
  std::vector<Cell> cells{static_cast<double>(values.size())};
  if (values.empty()) {
    cells.resize(distribution_columns().size(), std::nan(""));
    return cells;
  }
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  cells.insert(cells.end(), {mean(values), std_population(values)});
  for (const double q : {0.0, 0.25, 0.5, 0.75, 1.0}) cells.emplace_back(quantile_of_sorted(sorted, q));
  return cells;
}

Table table_by_turn(const std::string& name, const std::string& what) {
  Table table{.name = name, .columns = {what, "turn"}};
  for (std::string& column : distribution_columns()) table.columns.push_back(std::move(column));
  return table;
}

void add_by_turn(Table& table, const std::string& what, const ByTurn& values) {
  for (const auto& [turn, sample] : values) {
    std::vector<Cell> row{what, static_cast<double>(turn)};
    for (Cell& cell : distribution_cells(sample)) row.push_back(std::move(cell));
    table.add_row(std::move(row));
  }
}

}  // namespace carnot
