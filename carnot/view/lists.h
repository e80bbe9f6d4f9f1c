// view/lists.h -- lists of numbers as the page holds them: rounded, and short where they say little.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "carnot/core/base/json.h"
#include "carnot/core/data/trajectory.h"

namespace carnot {

/// Five significant digits; null if not finite.
OrderedJson rounded(double value);

/// Adds the list, or its one value if all are equal; nothing if all are null.
void add_list(OrderedJson& to, std::string_view name, const std::vector<OrderedJson>& values);

/// The values of a trajectory's sampled tokens: as above, or {"turns": one value for each turn} if each has one.
/// `values` has an entry per token; other lists are ignored.
void add_sampled(OrderedJson& to, std::string_view name, const Trajectory& trajectory, std::span<const double> values);

}  // namespace carnot
