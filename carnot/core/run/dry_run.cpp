// `--dry-run`: what a run would do, without running it.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <ostream>

#include "carnot/core/base/saturating.h"
#include "carnot/core/run/memory_advice.h"
#include "carnot/core/run/run.h"
#include "carnot/core/run/start.h"
#include "carnot/core/train/shard_work.h"

namespace carnot {
namespace {

using Count = Saturating;

// A token's place in a row of a rollout file, with its text, its signals and its credit; in one of an evaluation,
// which has fewer: estimated.
constexpr std::int64_t kBytesPerTrainedToken = 200;
constexpr std::int64_t kBytesPerEvaluatedToken = 70;

std::string number(Count n) { return std::to_string(n.value()); }

void add_checkpoints(const MemorySettings& s, std::vector<BudgetPart>& parts) {
  const StoredBytes stored = stored_bytes(s);
  const std::int64_t steps = s.stage == MemoryStage::Sft ? s.sft.steps : s.train.steps;
  const std::int64_t kept = std::min<std::int64_t>(s.train.max_checkpoints, std::max<std::int64_t>(steps, 1) - 1) + 1;
  const std::int64_t with_optimizer = s.train.save_optimizer == "last" ? std::min<std::int64_t>(kept, 2) : kept;
  const std::string of = s.train.max_checkpoints == 0 ? "of each checkpoint, and train.max_checkpoints=0 keeps all"
                                                      : number(kept) + " of them; train.max_checkpoints";
  const Count weights = Count(stored.policy) + stored.reference + stored.critic;
  parts.push_back({"checkpoints", (weights * kept).value(), of});
  parts.push_back({"optimizers in them", (Count(stored.optimizer) * with_optimizer).value(),
                   number(with_optimizer) + " of them; train.save_optimizer"});
  if (stored.base > 0) parts.push_back({"weights below adapters", stored.base, "once, where they are random"});
  if (s.stage == MemoryStage::Training && s.sft.steps > 0)
    parts.push_back({"warm_start", stored.policy, "the policy that SFT leaves"});
}

/// Where the folder is, or will be made.
std::optional<std::uintmax_t> free_space(const std::filesystem::path& folder) {
  std::error_code reason;
  std::filesystem::path existing = std::filesystem::absolute(folder, reason);
  while (!std::filesystem::exists(existing, reason) && existing.has_relative_path()) existing = existing.parent_path();
  const auto space = std::filesystem::space(existing, reason);
  return reason ? std::nullopt : std::optional(space.available);
}

}  // namespace

std::vector<BudgetPart> disk_budget(const MemorySettings& s) {
  std::vector<BudgetPart> parts;
  const Count context = s.rollout.options.episode.max_context_tokens;
  const Count step_tokens = step_trajectories<Count>(s.train, s.rollout) * context;
  const Count steps = s.stage == MemoryStage::Rollout ? 1 : s.train.steps;
  const bool writes_rollouts = s.stage == MemoryStage::Rollout || s.train.keep_rollouts;
  if (s.stage != MemoryStage::Rollout) add_checkpoints(s, parts);
  if (s.stage != MemoryStage::Sft && writes_rollouts)
    parts.push_back({"rollouts", (steps * step_tokens * kBytesPerTrainedToken).value(),
                     number(steps * step_tokens) + " tokens at most; train.keep_rollouts"});
  if (s.stage == MemoryStage::Rollout) return parts;
  const std::int64_t between = s.evaluation.every > 0 ? s.train.steps / s.evaluation.every : 0;
  const Count evaluations = s.stage == MemoryStage::Sft ? 1 : 1 + between + (s.evaluation.before_training ? 1 : 0);
  const Count tokens = evaluations * s.evaluation.tasks * s.evaluation.samples * context;
  parts.push_back({"evaluations", (tokens * kBytesPerEvaluatedToken).value(), number(tokens) + " tokens at most"});
  return parts;
}

Status dry_run(Recipe& recipe, MemoryStage stage, int ranks, std::ostream& out) {
  CARNOT_RETURN_IF_ERROR(ModelBundle::prepare_device(recipe.run));
  CARNOT_RETURN_IF_ERROR(check_ranks(recipe.train, ranks));
  if (stage == MemoryStage::Training) CARNOT_RETURN_IF_ERROR(recipe.check_trainable());
  CARNOT_ASSIGN_OR_RETURN(const auto bundle, ModelBundle::open(recipe));
  CARNOT_ASSIGN_OR_RETURN(const auto rows, sft_rows(recipe, bundle, stage));  // counted in what the process holds
  const MemorySettings settings = memory_settings(recipe, bundle.config, stage, ranks);
  out << recipe.to_yaml() << "\n# Disk at the most\n" << budget_table(disk_budget(settings));
  if (const auto free = free_space(recipe.run.run_folder))
    out << "  of the " << (*free >> 20) << " MiB that are free in " << recipe.run.run_folder << "\n";
  out << "\n# Memory at the peak" << (ranks > 1 ? ", of each rank" : "") << "\n"
      << budget_table(memory_budget(settings));
  if (const MachineMemory limit = memory_limit(recipe); limit.bytes > 0)
    out << "  of the " << (limit.bytes >> 20) << " MiB " << limit.source << "\n";
  const auto memory = predict_memory(recipe, bundle.config, stage, {.all = ranks});
  if (memory && ranks > 1)
    out << "  " << ((Saturating(*memory) * ranks).value() >> 20) << " MiB for " << ranks << " ranks on one machine\n";
  return memory ? Status(Done{}) : memory.error();
}

}  // namespace carnot
