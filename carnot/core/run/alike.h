// run/alike.h -- what must be the same on all ranks of a run: what they compute would drift apart.
#pragma once

#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/collectives/collectives.h"
#include "carnot/core/nn/model.h"
#include "carnot/core/train/model_bundle.h"
#include "carnot/core/train/recipe.h"

namespace carnot {

/// agree() on how the ranks' starts ended. Also fails if a rank has another program, other settings (threads may
/// differ), other kernels or other weights than rank 0. The message is the same on all ranks, and names both ranks with
/// what they have.
Status agree_on_start(Collectives& group, const Status& mine, Recipe& recipe, const ModelBundle& bundle);

/// Fails if a rank's tensors differ from rank 0's in any bit.
Status check_same_weights(Collectives& group, const std::vector<NamedTensor>& weights, const std::string& what);

}  // namespace carnot
