// data/rollout_write.h -- writes trajectories as JSON lines, which data/rollout_file.h reads.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "carnot/core/data/credit_table.h"
#include "carnot/core/data/tokens.h"
#include "carnot/core/data/tree.h"

namespace carnot {

/// Text of a token sequence, for the fields `input` and `output`.
using Decode = std::function<std::string(std::span<const TokenId>)>;

/// The rows of `groups`, in the order of trajectories(groups), one JSON object per line. `credit` can be empty: no
/// credit fields.
std::string rollout_rows(std::span<const Group> groups, const CreditTable& credit, const Decode& decode);

}  // namespace carnot
