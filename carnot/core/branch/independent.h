// branch/independent.h -- no branching: every trajectory starts from the prompt.
#pragma once

#include <memory>

#include "carnot/core/branch/branch.h"

namespace carnot {

/// The policy that never branches.
std::unique_ptr<BranchPolicy> independent();

}  // namespace carnot
