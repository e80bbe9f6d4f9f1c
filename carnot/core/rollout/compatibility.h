// rollout/compatibility.h -- checks before a run that an environment, a branch policy and a chat format go together.
#pragma once

#include <string>

#include "carnot/core/branch/branch.h"
#include "carnot/core/env/environment.h"
#include "carnot/core/text/chat.h"

namespace carnot {

/// Opens the first training task and refuses a policy that branches, and continuations from inside trajectories, if the
/// environment can be neither cloned nor replayed, and tools that the chat format cannot offer. A failure of the
/// environment is left to the rollout. `budget`: trajectories per task.
Status check_compatible(const EnvironmentFactory& environment, const std::string& environment_name,
                        const BranchPolicy& policy, int budget, bool continues, const ChatFamily& chat);

}  // namespace carnot
