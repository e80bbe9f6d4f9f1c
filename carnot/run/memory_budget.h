// run/memory_budget.h -- how much memory a run will hold at its peak, part by part, before it starts.
//
// The peak is what stays (weights, their packed layouts, optimizer, KV cache) and the greatest of what comes and goes:
// a pass of the engine, a log-prob pass, an update, an evaluation. Rows are counted at the recipe's limits:
// trajectories as long as the context, micro-batches that are full. Sums stop at the largest 64-bit number.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "carnot/nn/model_config.h"
#include "carnot/run/machine_memory.h"
#include "carnot/train/recipe.h"

namespace carnot {

/// The stage of a run that the budget is for.
enum class MemoryStage { Training, Sft, Rollout };

/// Everything that the prediction depends on. A plain value: advice tries others.
struct MemorySettings {
  RunOptions run{};
  ModelConfig model{};  ///< the policy's, with its vocabulary
  LoraOptions lora{};
  SftOptions sft{};
  RolloutSettings rollout{};
  TrainOptions train{};
  EvaluationOptions evaluation{};
  MemoryStage stage = MemoryStage::Training;
  bool reference = false;
  bool critic = false;
  int ranks = 1;                   ///< that share the run; the budget is that of one of them
  std::int64_t program_bytes = 0;  ///< what the process holds before there is a model: LibTorch, tokenizer, environment
};

/// `program_bytes` is what the process holds now.
MemorySettings memory_settings(const Recipe& recipe, const ModelConfig& model, MemoryStage stage, int ranks = 1);

struct MemoryPart {
  std::string name{};
  std::int64_t bytes = 0;
  std::string explanation{};  ///< the numbers it comes from
};

/// The parts of the peak, on one rank.
std::vector<MemoryPart> memory_budget(const MemorySettings& settings);
std::int64_t predicted_peak(const MemorySettings& settings);

/// Bytes that the forward pass of a packed micro-batch of `rows` rows keeps for the gradient, sequences being `length`
/// long, and the most that its backward pass adds to them for a while.
struct ActivationBytes {
  std::int64_t kept = 0;
  std::int64_t passing = 0;
};
ActivationBytes activation_bytes(const MemorySettings& settings, std::int64_t rows, std::int64_t length);

/// One line per part and the sum, for a terminal.
std::string memory_table(const std::vector<MemoryPart>& parts);

/// `memory.limit_megabytes` where it is set, else what the machine has available to the CPU; unknown for other devices.
MachineMemory memory_limit(const Recipe& recipe);

}  // namespace carnot
