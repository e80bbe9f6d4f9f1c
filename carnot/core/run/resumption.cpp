#include "carnot/core/run/resumption.h"

#include "carnot/core/base/log.h"

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

}  // namespace

bool lies_in(const fs::path& checkpoint, const fs::path& checkpoints) {
  std::error_code ignored;
  return fs::equivalent((fs::absolute(checkpoint) / "").lexically_normal().parent_path().parent_path(), checkpoints,
                        ignored);
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

Status settle_checkpoints(const fs::path& checkpoints, const std::optional<FoundCheckpoint>& checkpoint,
                          const TrainOptions& options) {
  if (!checkpoint || !lies_in(checkpoint->path, checkpoints)) return Done{};
  const auto removed = go_on_from(checkpoints, checkpoint->step, options.max_checkpoints);
  if (!removed) return removed.error();
  for (const fs::path& path : *removed)
    log_warning(path.string() + ": removed; it is damaged, and its steps come again");
  return Done{};
}

}  // namespace carnot
