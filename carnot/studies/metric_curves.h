// studies/metric_curves.h -- the metrics of a run by training step, from metrics.jsonl.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "carnot/core/base/result.h"

namespace carnot {

/// A metric by training step.
using Curve = std::map<std::int64_t, double>;

/// Every metric by its name (docs/metrics.md); values that are no number are left out. A last line that was cut short
/// ends the curves.
std::map<std::string, Curve> parse_metric_curves(std::string_view text);

/// The same from a file.
Result<std::map<std::string, Curve>> read_metric_curves(const std::filesystem::path& metrics);

}  // namespace carnot
