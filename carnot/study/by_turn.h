// study/by_turn.h -- values sorted by the turn they belong to, as a table and a chart.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "carnot/chart/plot.h"
#include "carnot/study/analysis.h"

namespace carnot {

/// Samples by turn index, counted from 1 as the papers do.
class ByTurn {
 public:
  void add(int turn, double value) { values_[turn].push_back(value); }

  const std::map<int, std::vector<double>>& values() const { return values_; }

  /// Adds a row per turn: `name`, turn, then distribution_cells.
  void add_rows(ResultTable& table, const std::string& name) const;

  /// Mean by turn with a band of one deviation to both sides.
  Series series(const std::string& name) const;

 private:
  std::map<int, std::vector<double>> values_{};
};

/// An empty table for add_rows(); `what` names its first column.
ResultTable table_by_turn(const std::string& name, const std::string& what);

}  // namespace carnot
