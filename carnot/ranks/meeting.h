// ranks/meeting.h -- how the ranks of a group find each other before they compute.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/collectives/options.h"
#include "carnot/core/rank/launcher.h"
#include "carnot/ranks/group_watch.h"

namespace carnot {

struct MetRanks {
  std::vector<std::string> names{};  ///< by rank: "rank 1 on host a (process 71)"
  c10::intrusive_ptr<c10d::Store> store{};
  c10::intrusive_ptr<c10d::Backend> backend{};
  std::unique_ptr<GroupWatch> watch{};
};

/// Meets the other ranks and connects with them. The error names those that did not come.
/// REQUIRES: more than one rank.
Result<MetRanks> meet_ranks(const RankSetting& setting, const ProcessGroupOptions& options);

std::chrono::milliseconds in_milliseconds(double seconds);

}  // namespace carnot
