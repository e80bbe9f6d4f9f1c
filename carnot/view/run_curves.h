// view/run_curves.h -- the metrics of a run that its page draws.
#pragma once

#include <string_view>

#include "carnot/core/base/json.h"

namespace carnot {

/// A list of {"name", "unit", "points": [[step, value], ...]}, or [step, value, low, high] with a 95 % interval
/// (evaluations: Wilson's, over tasks), of those of the table's metrics that the run has. `metrics`: the content of a
/// run's metrics.jsonl; lines that cannot be read are passed over.
OrderedJson run_curves(std::string_view metrics);

}  // namespace carnot
