// rows/csv.h -- comma-separated values (RFC 4180).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"

namespace carnot {

/// The records of a text, the header first. Fields are separated by semicolons where the header has more of them than
/// commas. The error names the line.
Result<std::vector<std::vector<std::string>>> parse_csv(std::string_view text, const std::string& name);

}  // namespace carnot
