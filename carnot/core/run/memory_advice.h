// run/memory_advice.h -- refuses a run that will not fit into memory, and says which settings to change to what.
#pragma once

#include <cstdint>

#include "carnot/core/base/result.h"
#include "carnot/core/run/machine_memory.h"
#include "carnot/core/run/memory_budget.h"

namespace carnot {

/// Fails if the prediction is more than `available`: how much is missing, and which settings to change to what.
Status check_memory(const MemorySettings& settings, const MachineMemory& available);

/// Ranks that make the run, some of them on this machine.
struct Ranks {
  int all = 1;
  int here = 1;
};

/// The memory that each rank of the run is predicted to take; refused if that is more than there is.
Result<std::int64_t> predict_memory(const Recipe& recipe, const ModelConfig& config, MemoryStage stage,
                                    const Ranks& ranks);

}  // namespace carnot
