// run/memory_advice.h -- refuses a run that will not fit into memory, and says which settings to change to what.
#pragma once

#include "carnot/core/base/result.h"
#include "carnot/core/run/machine_memory.h"
#include "carnot/core/run/memory_budget.h"

namespace carnot {

/// Fails if the prediction is more than `available`: how much is missing, and which settings to change to what.
Status check_memory(const MemorySettings& settings, const MachineMemory& available);

}  // namespace carnot
