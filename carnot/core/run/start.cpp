#include "carnot/core/run/start.h"

#include <algorithm>

#include "carnot/core/base/byte_stream.h"
#include "carnot/core/base/log.h"
#include "carnot/core/base/thread_pool.h"
#include "carnot/core/rollout/compatibility.h"
#include "carnot/core/run/find_run.h"
#include "carnot/core/run/group_start.h"
#include "carnot/core/run/memory_advice.h"
#include "carnot/core/run/resumed_settings.h"
#include "carnot/core/run/resumption.h"
#include "carnot/core/run/rollout_service.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

/// What can be refused before anything is loaded or written.
Status check_start(const Recipe& recipe, MemoryStage stage) {
  if (stage == MemoryStage::Training) CARNOT_RETURN_IF_ERROR(recipe.check_trainable());
  CARNOT_RETURN_IF_ERROR(check_rollout_service(recipe));
  return check_run_folder(recipe.run.run_folder, resume_of(recipe));
}

/// The configuration of the run to resume; a path to nothing if there is none.
fs::path recorded_config(const Recipe& recipe, const std::optional<FoundCheckpoint>& checkpoint) {
  if (!checkpoint) return RunFolder{recipe.run.run_folder}.config();
  const auto config = find_config(checkpoint->path);
  if (config) return *config;
  log_warning(config.error().message + "; the settings that it was trained with cannot be compared");
  return {};
}

/// What each of the ranks on this machine may take.
MachineMemory limit_of_rank(const Recipe& recipe, const Ranks& ranks) {
  MachineMemory limit = memory_limit(recipe);
  if (ranks.here == 1 || recipe.memory.limit_megabytes > 0) return limit;
  limit.bytes /= ranks.here;
  limit.source = "that each of " + std::to_string(ranks.here) + " ranks has " + limit.source;
  return limit;
}

/// Refuses what does not fit, in settings or in memory, before any weights are there.
Result<RunStart> start_alone(Recipe& recipe, const std::optional<FoundCheckpoint>& checkpoint, MemoryStage stage,
                             const Ranks& ranks) {
  const fs::path recorded = resume_of(recipe) == Resume::Auto ? recorded_config(recipe, checkpoint) : fs::path();
  CARNOT_RETURN_IF_ERROR(settle_shards(recipe, recorded, ranks.all));
  // SFT lays its checkpoint over the recipe's own model (sft_stage).
  const bool from_checkpoint = checkpoint && stage != MemoryStage::Sft;
  CARNOT_ASSIGN_OR_RETURN(auto bundle,
                          ModelBundle::open(recipe, from_checkpoint ? std::optional(checkpoint->path) : std::nullopt));
  if (stage != MemoryStage::Sft) {
    const Status compatible = check_compatible(*recipe.environment, recipe.environment_name, *recipe.method.branch,
                                               recipe.rollout.options.group_size, *bundle.chat);
    if (!compatible) return compatible.error();
  }
  if (resume_of(recipe) == Resume::Auto) CARNOT_RETURN_IF_ERROR(check_resumed_settings(recipe, recorded));
  CARNOT_ASSIGN_OR_RETURN(auto demonstrations, sft_rows(recipe, bundle, stage));
  CARNOT_ASSIGN_OR_RETURN(const auto memory, predict_memory(recipe, bundle.config, stage, ranks));
  CARNOT_RETURN_IF_ERROR(bundle.load_policy(recipe));
  return RunStart{std::move(bundle), std::move(demonstrations), memory};
}

Status fill_folder(Recipe& recipe, std::int64_t step) {
  const auto folder = open_run_folder(recipe.run.run_folder, resume_of(recipe));
  return folder ? write_config(*folder, recipe, step) : Status(folder.error());
}

}  // namespace

Resume resume_of(const Recipe& recipe) { return recipe.run.resume == "never" ? Resume::Never : Resume::Auto; }

Result<Hold> take_hold(const Recipe& recipe, MemoryStage stage, Collectives& group) {
  const MachineShare share = find_machine_share(group);
  RunOptions options = recipe.run;
  if (options.threads == 0 && group.size() > 1) options.threads = std::min(share.threads, kMaxThreads);
  const Status ready = agree(group, ModelBundle::prepare_device(options), "devices");
  if (!ready) return ready.error();
  auto folder = made_on_first_rank(group, "taking the run folder", [&]() -> Result<FolderLock> {
    CARNOT_RETURN_IF_ERROR(check_start(recipe, stage));
    return FolderLock::take(recipe.run.run_folder);
  });
  if (!folder) return folder.error();
  return Hold{std::move(folder).value(), share};
}

Result<std::optional<FoundCheckpoint>> common_checkpoint(const RunOptions& run, const fs::path& checkpoints,
                                                         Collectives& group) {
  std::optional<FoundCheckpoint> found;
  const Status searched = on_first_rank(group, "looking for a checkpoint", [&]() -> Status {
    CARNOT_ASSIGN_OR_RETURN(auto own, checkpoint_to_resume(run, checkpoints));
    found = std::move(own);
    return Done{};
  });
  if (!searched) return searched.error();
  ByteWriter out;
  if (found) {
    out.add(found->step);
    out.add(found->path.string());
  }
  const std::string bytes = from_first_rank(group, out.take(), "the checkpoint to resume");
  if (bytes.empty() || group.rank() == 0) return found;
  ByteReader in(bytes);
  std::string path;
  in.get(found.emplace().step);
  in.get(path);
  found->path = path;
  return found;
}

Result<RunFolder> open_folder(Recipe& recipe, const std::optional<FoundCheckpoint>& checkpoint, Collectives& group) {
  const Status opened = on_first_rank(group, "opening the run folder",
                                      [&] { return fill_folder(recipe, checkpoint ? checkpoint->step : 0); });
  if (!opened) return opened.error();
  return RunFolder{recipe.run.run_folder};
}

Status restore_folder(Recipe& recipe, Collectives& group) {
  return on_first_rank(group, "looking for the run folder", [&]() -> Status {
    std::error_code unknown;
    if (fs::exists(RunFolder{recipe.run.run_folder}.config(), unknown) || unknown) return Done{};
    return fill_folder(recipe, 0);
  });
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

Result<std::int64_t> predict_memory(const Recipe& recipe, const ModelConfig& config, MemoryStage stage,
                                    const Ranks& ranks) {
  const MemorySettings settings = memory_settings(recipe, config, stage, ranks.all);
  if (recipe.memory.check == "off") return predicted_peak(settings);
  const Status fits = check_memory(settings, limit_of_rank(recipe, ranks));
  if (!fits && recipe.memory.check == "refuse") return fits.error();
  if (!fits) log_warning(fits.error().message);
  return predicted_peak(settings);
}

Result<RunStart> start(Recipe& recipe, const std::optional<FoundCheckpoint>& checkpoint, MemoryStage stage,
                       Collectives& group, const MachineShare& share) {
  auto begun =
      agreed(group, start_alone(recipe, checkpoint, stage, {.all = group.size(), .here = share.ranks}), "the start");
  if (!begun) return begun;
  CARNOT_RETURN_IF_ERROR(check_alike(group, recipe, begun->bundle));
  return begun;
}

}  // namespace carnot
