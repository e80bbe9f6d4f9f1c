// study/distribution.h -- a sample in a few numbers, and values sorted into bins of equal size.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "carnot/study/analysis.h"

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

}  // namespace carnot
