#include "carnot/core/run/start_plan.h"

#include <algorithm>

#include "carnot/core/base/byte_stream.h"
#include "carnot/core/base/log.h"
#include "carnot/core/run/find_run.h"
#include "carnot/core/run/rollout_service.h"
#include "carnot/core/train/shard_work.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

Result<std::optional<FoundCheckpoint>> named_checkpoint(const fs::path& path, const fs::path& checkpoints) {
  CARNOT_RETURN_IF_ERROR(verify_checkpoint(path));
  CARNOT_ASSIGN_OR_RETURN(const auto step, checkpoint_step(path));
  const auto latest = latest_checkpoint(checkpoints);
  if (latest && *latest && (!lies_in(path, checkpoints) || (*latest)->step != step))
    return Error{"resume: " + path.string() + ": the run would write over " + (*latest)->path.string() +
                 "; expected that checkpoint, or another run_folder"};
  return std::optional(FoundCheckpoint{.step = step, .path = path});
}

/// The configuration of the run to resume; empty if it is unknown.
fs::path recorded_config(const StartPlan& plan) {
  if (!plan.checkpoint) return plan.folder.config();
  const auto config = find_config(plan.checkpoint->path);
  if (config) return *config;
  log_warning(config.error().message + "; the settings that it was trained with cannot be compared");
  return {};
}

std::string bytes_of_plan(const StartPlan& plan) {
  ByteWriter out;
  out.add(plan.folder.root.string());
  out.add(plan.checkpoint ? std::optional(plan.checkpoint->path.string()) : std::nullopt);
  out.add(plan.step());
  out.add(plan.recorded.string());
  out.add(plan.virtual_shards);
  return out.take();
}

StartPlan plan_of_bytes(const std::string& bytes) {
  StartPlan plan;
  std::string folder, recorded;
  std::optional<std::string> checkpoint;
  std::int64_t step = 0;
  ByteReader in(bytes);
  in.get(folder);
  in.get(checkpoint);
  in.get(step);
  in.get(recorded);
  in.get(plan.virtual_shards);
  CARNOT_CHECK(in.complete(), "a plan of rank 0");
  plan.folder.root = folder;
  plan.recorded = recorded;
  if (checkpoint) plan.checkpoint = FoundCheckpoint{.step = step, .path = *checkpoint};
  return plan;
}

}  // namespace

Resume resume_of(const RunOptions& run) { return run.resume == "never" ? Resume::Never : Resume::Auto; }

Status check_start(const Recipe& recipe, MemoryStage stage) {
  if (stage == MemoryStage::Training) CARNOT_RETURN_IF_ERROR(recipe.check_trainable());
  CARNOT_RETURN_IF_ERROR(check_rollout_service(recipe));
  return check_run_folder(recipe.run.run_folder, resume_of(recipe.run));
}

Result<StartPlan> resolve_start(const Recipe& recipe, MemoryStage stage, int ranks) {
  StartPlan plan{.folder = {recipe.run.run_folder}};
  if (stage != MemoryStage::Rollout) {
    CARNOT_ASSIGN_OR_RETURN(plan.checkpoint, checkpoint_to_resume(recipe.run, plan.folder.checkpoints()));
  }
  if (resume_of(recipe.run) == Resume::Auto) plan.recorded = recorded_config(plan);
  CARNOT_ASSIGN_OR_RETURN(plan.virtual_shards, settled_shards(recipe, plan.recorded, ranks));
  return plan;
}

Result<std::optional<FoundCheckpoint>> checkpoint_to_resume(const RunOptions& run, const fs::path& checkpoints) {
  if (run.resume == "never") return std::optional<FoundCheckpoint>();
  CARNOT_RETURN_IF_ERROR(repair_checkpoints(checkpoints));
  if (run.resume != "auto") return named_checkpoint(run.resume, checkpoints);
  auto found = latest_checkpoint(checkpoints);
  if (!found || !*found) return found;
  for (const std::string& damage : (*found)->damaged)
    log_warning("skipped a damaged checkpoint: " + damage + "; the run continues from " + (*found)->path.string());
  return found;
}

Result<int> settled_shards(const Recipe& recipe, const fs::path& config, int ranks) {
  const TrainOptions& options = recipe.train;
  if (options.gradient_reduction == "fast") return options.virtual_shards;
  if (options.virtual_shards > 0) {
    CARNOT_RETURN_IF_ERROR(check_ranks(options, ranks));
    return options.virtual_shards;
  }
  // A configuration that cannot be read is what check_resumed_settings() reports.
  if (config.empty() || !fs::exists(config)) return ranks;
  const auto recorded = Recipe::load_recorded(config, {});
  if (!recorded || recorded->train.gradient_reduction == "fast") return ranks;
  const int shards = std::max(1, recorded->train.virtual_shards);
  if (shards % ranks == 0) return shards;
  if (recipe.run.resume_changes == "allow") return ranks;
  return Error{"train.virtual_shards: the run to resume was made with " + std::to_string(shards) + ", which " +
               std::to_string(ranks) + " ranks cannot share evenly; expected a number of ranks that divides it, or " +
               "resume_changes=allow for a run that continues with " + std::to_string(ranks)};
}

Result<StartPlan> planned_for_all(Collectives& group, const std::string& what,
                                  const std::function<Result<StartPlan>()>& resolve) {
  const auto bytes = bytes_of_first_rank(group, what, [&]() -> Result<std::string> {
    CARNOT_ASSIGN_OR_RETURN(const auto plan, resolve());
    return bytes_of_plan(plan);
  });
  return bytes ? Result<StartPlan>(plan_of_bytes(*bytes)) : bytes.error();
}

}  // namespace carnot
