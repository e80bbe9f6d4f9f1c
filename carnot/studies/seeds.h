// studies/seeds.h -- the seeds of a comparison, as its user writes them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"

namespace carnot {

/// "0-4" or "0,1,2" or both: in order, each once.
Result<std::vector<std::int64_t>> parse_seeds(std::string_view text);

}  // namespace carnot
