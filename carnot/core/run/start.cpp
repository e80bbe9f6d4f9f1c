#include "carnot/core/run/start.h"

#include <algorithm>

#include "carnot/core/base/log.h"
#include "carnot/core/base/thread_pool.h"
#include "carnot/core/rank/processors.h"
#include "carnot/core/rollout/compatibility.h"
#include "carnot/core/run/alike.h"
#include "carnot/core/run/disk_budget.h"
#include "carnot/core/run/memory_advice.h"
#include "carnot/core/run/recorded_settings.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

/// What this rank has of its machine. Processors are counted where there are several ranks only.
MachineShare find_machine_share(Collectives& group) {
  if (group.size() == 1) return {};
  std::vector<RankPlace> places;
  for (const std::string& bytes : group.gather(bytes_of_place(own_place()), "where the ranks are"))
    places.push_back(place_of_bytes(bytes));
  return share_of_machine(places, group.rank());
}

/// Settings, memory, weights, on each rank. Writes nothing.
Status open_model(StartedRun& started, Recipe& recipe, MemoryStage stage, const Ranks& ranks) {
  // A rank's own number stays: if it is not rank 0's, the ranks are not alike.
  if (recipe.train.virtual_shards == 0) recipe.train.virtual_shards = started.plan.virtual_shards;
  // SFT lays its checkpoint over the recipe's own model (sft_stage).
  std::optional<fs::path> checkpoint;
  if (started.plan.checkpoint && stage != MemoryStage::Sft) checkpoint = started.plan.checkpoint->path;
  CARNOT_ASSIGN_OR_RETURN(started.bundle, ModelBundle::open(recipe, checkpoint));
  if (stage != MemoryStage::Sft)
    CARNOT_RETURN_IF_ERROR(check_compatible(*recipe.environment, recipe.environment_name, *recipe.method.branch,
                                            recipe.rollout.options.group_size,
                                            recipe.measurements().contains(Measurement::Oracle), *started.bundle.chat));
  if (!started.plan.recorded.empty()) CARNOT_RETURN_IF_ERROR(check_resumed_settings(recipe, started.plan.recorded));
  CARNOT_ASSIGN_OR_RETURN(started.demonstrations, sft_rows(recipe, started.bundle, stage));
  CARNOT_ASSIGN_OR_RETURN(started.predicted_memory, predict_memory(recipe, started.bundle.config, stage, ranks));
  return started.bundle.load_policy(recipe);
}

Status fill_folder(const RunFolder& folder, Recipe& recipe, std::int64_t step) {
  CARNOT_RETURN_IF_ERROR(open_run_folder(folder.root, resume_of(recipe.run)));
  return write_config(folder, recipe, step);
}

/// Makes the folder's checkpoints those of a run that resumes from the plan's, if that is one of them.
Status settle_checkpoints(const StartPlan& plan, std::int64_t max_checkpoints) {
  const fs::path checkpoints = plan.folder.checkpoints();
  if (!plan.checkpoint || !lies_in(plan.checkpoint->path, checkpoints)) return Done{};
  CARNOT_ASSIGN_OR_RETURN(const auto removed, go_on_from(checkpoints, plan.step(), max_checkpoints));
  for (const fs::path& path : removed)
    log_warning(path.string() + ": removed; it is damaged, and its steps come again");
  return Done{};
}

/// Only of a new run: one that resumes has most of its files.
void warn_of_full_disk(const StartedRun& started, const Recipe& recipe, MemoryStage stage) {
  const auto free = free_space(started.plan.folder.root);
  if (started.plan.checkpoint || !free) return;
  const Status fits = check_disk(memory_settings(recipe, started.bundle.config, stage), *free, recipe.run.run_folder);
  if (!fits) log_warning(fits.error().message);
}

/// Everything that is written before the first stage; the tracker first, whose refusal leaves no folder.
Status open_folder(StartedRun& started, Recipe& recipe, MemoryStage stage) {
  const StartPlan& plan = started.plan;
  if (stage != MemoryStage::Rollout) {
    CARNOT_ASSIGN_OR_RETURN(started.tracking, Tracking::start(recipe, plan.folder, plan.checkpoint.has_value()));
  }
  warn_of_full_disk(started, recipe, stage);
  CARNOT_RETURN_IF_ERROR(fill_folder(plan.folder, recipe, plan.step()));
  CARNOT_RETURN_IF_ERROR(settle_checkpoints(plan, recipe.train.max_checkpoints));
  return started.tracking.keep_id(plan.folder);
}

}  // namespace

Result<StartedRun> start_run(Recipe& recipe, MemoryStage stage, const RunControl& control) {
  Collectives& group = *control.group;
  const MachineShare share = find_machine_share(group);
  RunOptions device = recipe.run;
  if (device.threads == 0 && group.size() > 1) device.threads = std::min(share.threads, kMaxThreads);
  Status ready = ModelBundle::prepare_device(device);
  StartedRun started;
  const auto resolve = [&]() -> Result<StartPlan> {
    if (!ready) return StartPlan{};  // why is what the ranks agree on below
    CARNOT_RETURN_IF_ERROR(check_start(recipe, stage));
    CARNOT_ASSIGN_OR_RETURN(auto lock, FolderLock::take(recipe.run.run_folder));
    started.lock.emplace(std::move(lock));
    return resolve_start(recipe, stage, group.size());
  };
  CARNOT_ASSIGN_OR_RETURN(started.plan, planned_for_all(group, "the plan of the run", resolve));
  const bool is_planned = !started.plan.folder.root.empty();
  if (ready && is_planned) ready = open_model(started, recipe, stage, {.all = group.size(), .here = share.ranks});
  CARNOT_RETURN_IF_ERROR(agree_on_start(group, ready, recipe, started.bundle));
  (void)control.stop_requested();  // the first question: from here on a stop is orderly
  CARNOT_RETURN_IF_ERROR(
      on_first_rank(group, "opening the run folder", [&] { return open_folder(started, recipe, stage); }));
  return started;
}

Result<StartedStage> start_stage(const Recipe& recipe, const RunFolder& folder, Collectives& group) {
  StartedStage started;
  const auto resolve = [&]() -> Result<StartPlan> {
    CARNOT_ASSIGN_OR_RETURN(auto lock, FolderLock::take(folder.root));
    started.lock.emplace(std::move(lock));
    CARNOT_RETURN_IF_ERROR(open_run_folder(folder.root, Resume::Auto));
    RunOptions resume = recipe.run;
    if (resume.resume != "never") resume.resume = "auto";
    StartPlan plan{.folder = folder};
    CARNOT_ASSIGN_OR_RETURN(plan.checkpoint, checkpoint_to_resume(resume, folder.checkpoints()));
    CARNOT_RETURN_IF_ERROR(settle_checkpoints(plan, recipe.train.max_checkpoints));
    return plan;
  };
  CARNOT_ASSIGN_OR_RETURN(started.plan, planned_for_all(group, "the plan of a stage", resolve));
  return started;
}

Status restore_folder(Recipe& recipe) {
  const RunFolder folder{recipe.run.run_folder};
  std::error_code unknown;
  if (fs::exists(folder.config(), unknown) || unknown) return Done{};
  return fill_folder(folder, recipe, 0);
}

Result<SplitDemonstrations> sft_rows(const Recipe& recipe, const ModelBundle& bundle, MemoryStage stage) {
  const SftOptions& sft = recipe.sft;
  if (stage == MemoryStage::Rollout || sft.steps == 0 || sft.source.empty() || bundle.checkpoint)
    return SplitDemonstrations();
  return read_demonstrations({.paths = sft.source,
                              .held_out_share = sft.held_out_share,
                              .seed = static_cast<std::uint64_t>(recipe.run.seed),
                              .max_tokens = recipe.rollout.options.episode.max_context_tokens},
                             *bundle.chat);
}

}  // namespace carnot
