// data/rollout_file.h -- trajectories as JSON lines, in the format of docs/trajectory_format.md.
//
// One trajectory per line. A row holds everything needed to recompute credit: tokens, masks, spans, turns,
// signals. Trees are reassembled from `tree`, `parent` and `branch_turn`; shared turns are stored once.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/data/credit_table.h"
#include "carnot/core/data/tree.h"

namespace carnot {

struct RolloutFile {
  std::vector<Group> groups{};
  CreditTable credit{};            ///< in the order of trajectories(groups); empty if no row has credit fields
  std::vector<int> line_of_row{};  ///< line number (from 1) of each trajectory
};

/// Reads rows of any system that provides the required fields (uid, traj_id, token_ids, loss_mask, score). Unknown
/// fields are ignored; missing ones are reported with their line. Rows of one group (equal uid and step) need not be
/// adjacent, but a branch must follow its parent. A row without `turns` is one turn, if its sampled tokens are
/// contiguous.
Result<RolloutFile> parse_rollout_rows(std::string_view text, const std::string& name);
Result<RolloutFile> read_rollout_file(const std::filesystem::path& path);

/// Text of a token sequence, for the fields `input` and `output`.
using Decode = std::function<std::string(std::span<const TokenId>)>;

/// The rows of `groups`, in the order of trajectories(groups), one JSON object per line. `credit` can be empty: no
/// credit fields.
std::string rollout_rows(std::span<const Group> groups, const CreditTable& credit, const Decode& decode);

}  // namespace carnot
