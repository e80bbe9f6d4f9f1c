#include "carnot/train/memory_budget.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "carnot/train/workbench.h"

namespace carnot {
namespace {

// Resident memory of a dry run with the CPU wheel.
constexpr std::int64_t kProgramBytes = std::int64_t{128} << 20;

std::int64_t bytes_per_value(const std::string& dtype) { return dtype == "float64" ? 8 : dtype == "bfloat16" ? 2 : 4; }

/// Values that one token's forward pass leaves behind for the gradient: what nn/ saves, operator by operator.
std::int64_t saved_values_per_token(const ModelConfig& config) {
  const std::int64_t h = config.hidden_size, f = config.intermediate_size;
  const std::int64_t queries = std::int64_t{config.num_heads} * config.head_dim;
  const std::int64_t projected = queries + 2 * std::int64_t{config.num_kv_heads} * config.head_dim;
  // Two residual sums, two norms' outputs, projections, attention's output, gate and up, their product.
  const std::int64_t layer = 4 * h + projected + queries + 3 * f;
  return config.num_layers * layer + 3 * h;
}

std::string count(std::int64_t n, const std::string& what) { return std::to_string(n) + " " + what; }

std::string megabytes(std::int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%10.1f MiB", static_cast<double>(bytes) / (1 << 20));
  return text;
}

}  // namespace

std::vector<MemoryPart> memory_budget(const Recipe& recipe, const ModelConfig& config) {
  const std::int64_t value = bytes_per_value(recipe.run.dtype);
  const std::int64_t parameters = config.num_parameters();
  const auto signals = required_signals(recipe.method);
  const std::int64_t models = 1 + (signals.contains(Signal::Reference) ? 1 : 0) + (signals.contains(Signal::Value) ? 1 : 0);
  const std::int64_t trained = 1 + (signals.contains(Signal::Value) ? 1 : 0);
  const std::int64_t moment = std::max<std::int64_t>(4, value);
  const std::int64_t per_parameter = 2 * moment + (value < 4 ? 4 : 0);
  const int trajectories = recipe.train.groups * recipe.rollout.explore.budget;
  const std::int64_t blocks = cache_blocks(recipe.rollout, trajectories);
  const std::int64_t block_bytes =
      std::int64_t{config.num_layers} * 2 * config.num_kv_heads * config.head_dim * kBlockTokens * value;
  const std::int64_t rows = recipe.train.micro_batch_tokens;
  return {
      {"weights", models * parameters * value, count(parameters, "parameters") + " x " + count(models, "models")},
      {"packed weights", models * 2 * parameters * value, "two layouts for the matrix products"},
      {"gradients", trained * parameters * value, count(trained, "trained models")},
      {"optimizer", trained * parameters * per_parameter, count(per_parameter, "bytes a parameter")},
      {"KV cache", blocks * block_bytes, count(blocks, "blocks of 16 positions; rollout.cache_tokens sets them")},
      {"activations", trained * rows * saved_values_per_token(config) * value,
       count(rows, "rows a micro-batch; train.micro_batch_tokens sets them")},
      {"logits", std::max<std::int64_t>(std::int64_t{4} << 22, std::int64_t{recipe.rollout.engine.logits_megabytes} << 20),
       "one strip; never tokens x vocabulary"},
      {"program and LibTorch", kProgramBytes, "measured before a run begins"},
  };
}

std::string memory_table(const std::vector<MemoryPart>& parts) {
  std::string text;
  std::int64_t total = 0;
  for (const MemoryPart& part : parts) {
    text += "  " + megabytes(part.bytes) + "  " + part.name + " (" + part.explanation + ")\n";
    total += part.bytes;
  }
  text += "  " + megabytes(total) + "  in all";
  if (available_memory() > 0) text += ", of " + std::to_string(available_memory() >> 20) + " MiB on this machine";
  return text + "\n";
}

std::int64_t available_memory() {
  const std::int64_t pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGE_SIZE);
  return pages > 0 && size > 0 ? pages * size : 0;
}

}  // namespace carnot
