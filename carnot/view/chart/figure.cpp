#include "carnot/view/chart/figure.h"

#include <algorithm>

#include "carnot/core/base/check.h"

namespace carnot {
namespace {

const Table& table_named(const std::string& name, std::span<const Table> tables) {
  const auto found = std::find_if(tables.begin(), tables.end(), [&](const Table& table) { return table.name == name; });
  CARNOT_CHECK(found != tables.end(), "no table is named " + name);
  return *found;
}

}  // namespace

void check_figures(std::span<const Figure> figures, std::span<const Table> tables) {
  for (const Figure& figure : figures) {
    const Table& table = table_named(figure.table, tables);
    CARNOT_CHECK(!figure.y.empty(), figure.title + " draws no column");
    CARNOT_CHECK_EQ(figure.low.empty(), figure.high.empty());
    std::vector<std::string> columns = figure.y;
    columns.push_back(figure.x);
    columns.insert(columns.end(), figure.series.begin(), figure.series.end());
    for (const std::string& column : {figure.low, figure.high, figure.spread})
      if (!column.empty()) columns.push_back(column);
    for (const auto& [column, cells] : figure.rows) columns.push_back(column);
    for (const std::string& column : columns) table.index_of(column);
    if (figure.dots.empty()) continue;
    for (const std::string& column : {figure.x, figure.y[0]}) table_named(figure.dots, tables).index_of(column);
  }
}

}  // namespace carnot
