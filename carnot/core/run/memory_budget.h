// run/memory_budget.h -- how much memory a run will hold at its peak, part by part, before it starts.
//
// The peak is what stays (weights, their packed layouts, optimizer, KV cache) and the greatest of what comes and goes:
// a pass of the engine, a log-prob pass, an update, an evaluation. Rows are counted at the recipe's limits:
// trajectories as long as the context, micro-batches that are full. Sums stop at the largest 64-bit number.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "carnot/core/nn/model_config.h"
#include "carnot/core/run/budget_table.h"
#include "carnot/core/run/machine_memory.h"
#include "carnot/core/train/recipe.h"

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

/// The parts of the peak, on one rank.
std::vector<BudgetPart> memory_budget(const MemorySettings& settings);
std::int64_t predicted_peak(const MemorySettings& settings);

/// What a checkpoint stores, in bytes; the critic's with its optimizer.
struct StoredBytes {
  std::int64_t policy = 0;  ///< the adapters if there are any
  std::int64_t optimizer = 0;
  std::int64_t reference = 0;
  std::int64_t critic = 0;
  std::int64_t base = 0;  ///< below the adapters, once for all checkpoints
};
StoredBytes stored_bytes(const MemorySettings& settings);

/// Bytes that the forward pass of a packed micro-batch of `rows` rows keeps for the gradient, sequences being `length`
/// long, and the most that its backward pass adds to them for a while.
struct ActivationBytes {
  std::int64_t kept = 0;
  std::int64_t passing = 0;
};
ActivationBytes activation_bytes(const MemorySettings& settings, std::int64_t rows, std::int64_t length);

/// `memory.limit_megabytes` where it is set, else what the machine has available to the CPU; unknown for other devices.
MachineMemory memory_limit(const Recipe& recipe);

}  // namespace carnot
