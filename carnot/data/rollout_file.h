// data/rollout_file.h -- trajectories as JSON lines: reads the row of docs/trajectory_format.md.
// data/rollout_write.h writes it.
//
// One trajectory a line. A row holds everything needed to recompute credit: tokens, masks, spans, turns,
// signals. Trees are put together again from `tree`, `parent` and `branch_turn`; shared turns are stored once.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "carnot/base/result.h"
#include "carnot/data/credit_table.h"
#include "carnot/data/tree.h"

namespace carnot {

struct RolloutFile {
  std::vector<Group> groups{};
  CreditTable credit{};            ///< numbered as trajectories(groups); empty where no row has credit fields
  std::vector<int> line_of_row{};  ///< line (from 1) of each trajectory
};

/// Reads rows of any system that fills the required fields (uid, traj_id, token_ids, loss_mask, score); unknown
/// fields are ignored, missing ones named with their line. Rows of one group (equal uid and step) need not be
/// neighbours, but a branch comes after its parent. Without `turns` a row is one turn, if its sampled tokens are one
/// run.
Result<RolloutFile> parse_rollout_rows(std::string_view text, const std::string& name);
Result<RolloutFile> read_rollout_file(const std::filesystem::path& path);

}  // namespace carnot
