// studies/distribution.h -- a sample in a few numbers, and values sorted into bins of equal size.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "carnot/view/chart/table.h"

namespace carnot {

/// The value below which a share of `q` lies, between neighbours on a straight line (as numpy's default).
/// REQUIRES: not empty; 0 <= q <= 1.
double quantile(std::span<const double> values, double q);

/// The number of the bin, from 0, that each value falls into, when the sorted values are cut into `bins` parts of
/// equal size. Equal values share a bin: that of the middle of their ranks. REQUIRES: bins > 0.
std::vector<int> quantile_bins(std::span<const double> values, int bins);

/// Names of what distribution_cells gives: n, mean, deviation, minimum, quartiles, maximum.
std::vector<std::string> distribution_columns();
/// Not a number for what an empty sample does not have.
std::vector<Cell> distribution_cells(std::span<const double> values);

/// Samples by turn, counted from 1 as the papers do.
using ByTurn = std::map<int, std::vector<double>>;

/// An empty table for add_by_turn: `what`, "turn", distribution_columns.
Table table_by_turn(const std::string& name, const std::string& what);
/// Adds a row per turn; `what` is its first cell.
void add_by_turn(Table& table, const std::string& what, const ByTurn& values);

}  // namespace carnot
