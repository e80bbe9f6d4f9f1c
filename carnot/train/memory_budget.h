// train/memory_budget.h -- how much memory a run will need, part by part, before it starts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "carnot/nn/model_config.h"
#include "carnot/train/recipe.h"

namespace carnot {

struct MemoryPart {
  std::string name{};
  std::int64_t bytes = 0;
  std::string explanation{};  ///< the numbers it comes from
};

/// The largest parts of the peak. `config` is the policy's, with its vocabulary.
std::vector<MemoryPart> memory_budget(const Recipe& recipe, const ModelConfig& config);

/// One line per part and the sum, for a terminal.
std::string memory_table(const std::vector<MemoryPart>& parts);

/// Bytes that this machine has for it; 0 where unknown.
std::int64_t available_memory();

}  // namespace carnot
