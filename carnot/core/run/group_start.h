// run/group_start.h -- what the ranks of a run settle before its first step. A process alone has nothing to settle but
// the number of shards.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/collectives/collectives.h"
#include "carnot/core/nn/model.h"
#include "carnot/core/rank/processors.h"
#include "carnot/core/train/model_bundle.h"
#include "carnot/core/train/recipe.h"

namespace carnot {

/// What this rank has of its machine. Processors are counted where there are several ranks only.
MachineShare find_machine_share(Collectives& group);

/// Fills in train.virtual_shards where it is 0: as `config` says, the config.yaml of the run that is resumed (1 if it
/// says nothing: one process made it), else one for each rank. Fails if the ranks cannot share so many evenly; a
/// recorded number that they cannot share gives way where resume_changes is `allow`. With train.gradient_reduction=fast
/// there is nothing to fill in.
Status settle_shards(Recipe& recipe, const std::filesystem::path& config, int ranks);

/// Fails if a rank has another program, other settings (threads may differ), other kernels or other weights than
/// rank 0: what they compute would drift apart. The message is the same on all ranks, and names both with what they
/// have.
Status check_alike(Collectives& group, Recipe& recipe, const ModelBundle& bundle);

/// Fails if a rank's tensors differ from rank 0's in any bit.
Status check_same_weights(Collectives& group, const std::vector<NamedTensor>& weights, const std::string& what);

}  // namespace carnot
