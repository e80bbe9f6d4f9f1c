// branch/independent.h -- no branching.
#pragma once

#include <memory>

#include "carnot/branch/branch.h"

namespace carnot {

/// Every trajectory starts from the prompt.
std::unique_ptr<BranchPolicy> independent();

}  // namespace carnot
