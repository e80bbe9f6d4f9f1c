// collectives/join.h -- how a process meets the other ranks of its group.
#pragma once

#include <memory>

#include "carnot/core/base/result.h"
#include "carnot/core/collectives/collectives.h"
#include "carnot/core/collectives/options.h"
#include "carnot/core/rank/launcher.h"

namespace carnot {

using JoinRanks = Result<std::unique_ptr<Collectives>> (*)(const RankSetting& setting,
                                                           const ProcessGroupOptions& options);

/// Sets how join_ranks() meets others, once, when a program starts.
void offer_ranks(JoinRanks join);

/// OneProcess for a group of one, otherwise what was offered. Without an offer, a larger group is an error.
Result<std::unique_ptr<Collectives>> join_ranks(const RankSetting& setting, const ProcessGroupOptions& options);

}  // namespace carnot
