// data/rollout_write.h -- trajectories as JSON lines: writes the rows that data/rollout_file.h reads.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "carnot/data/credit_table.h"
#include "carnot/data/tokens.h"
#include "carnot/data/tree.h"

namespace carnot {

/// Text of a token sequence, for the fields `input` and `output`.
using Decode = std::function<std::string(std::span<const TokenId>)>;

/// The rows of `groups`, numbered as trajectories(groups), one JSON object a line. `credit` may be empty: no credit
/// fields.
std::string rollout_rows(std::span<const Group> groups, const CreditTable& credit, const Decode& decode);

}  // namespace carnot
