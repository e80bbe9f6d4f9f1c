#include "carnot/study/by_turn.h"

#include "carnot/base/statistics.h"
#include "carnot/study/distribution.h"

namespace carnot {

void ByTurn::add_rows(ResultTable& table, const std::string& name) const {
  for (const auto& [turn, values] : values_) {
    std::vector<Cell> row{name, static_cast<double>(turn)};
    for (Cell& cell : distribution_cells(values)) row.push_back(std::move(cell));
    table.rows.push_back(std::move(row));
  }
}

Series ByTurn::series(const std::string& name) const {
  Series series{.name = name};
  for (const auto& [turn, values] : values_) {
    const double centre = mean(values), deviation = std_population(values);
    series.x.push_back(turn);
    series.y.push_back(centre);
    series.low.push_back(centre - deviation);
    series.high.push_back(centre + deviation);
  }
  return series;
}

ResultTable table_by_turn(const std::string& name, const std::string& what) {
  ResultTable table{.name = name, .columns = {what, "turn"}};
  for (std::string& column : distribution_columns()) table.columns.push_back(std::move(column));
  return table;
}

}  // namespace carnot
