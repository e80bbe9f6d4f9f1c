#include "carnot/core/run/disk_budget.h"

#include <algorithm>

#include "carnot/core/base/saturating.h"
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

std::optional<std::int64_t> free_space(const std::filesystem::path& folder) {
  std::error_code reason;
  std::filesystem::path existing = std::filesystem::absolute(folder, reason);
  while (!std::filesystem::exists(existing, reason) && existing.has_relative_path()) existing = existing.parent_path();
  const auto space = std::filesystem::space(existing, reason);
  return reason ? std::nullopt : std::optional(static_cast<std::int64_t>(space.available));
}

Status check_disk(const MemorySettings& settings, std::int64_t free, const std::string& folder) {
  const auto parts = disk_budget(settings);
  if (total_bytes(parts) <= free) return Done{};
  return Error{folder + ": the run writes up to " + std::to_string(total_bytes(parts) >> 20) + " MiB; " +
               std::to_string(free >> 20) + " MiB are free:\n" + budget_table(parts)};
}

}  // namespace carnot
