#include "carnot/core/run/stage_files.h"

#include "carnot/core/run/alike.h"

namespace carnot {

Result<StageFiles> StageFiles::open(const Run& run, const Options& options) {
  const auto open_metrics = [&] {
    return MetricsWriter::open({.jsonl = options.folder.metrics(),
                                .tensorboard = options.folder.tensorboard(),
                                .resume_step = options.resume_step,
                                .is_logged = options.is_logged});
  };
  CARNOT_ASSIGN_OR_RETURN(auto writer, made_on_first_rank(*run.control.group, "opening the metrics", open_metrics));
  return StageFiles(run, options, std::move(writer));
}

Status StageFiles::write_metrics(std::int64_t step, const StepMetrics& metrics) {
  return on_first_rank(*run_->control.group, "writing metrics", [&] { return writer_->write(step, metrics); });
}

bool StageFiles::save_is_due(std::int64_t step) const {
  const double minutes = run_->recipe.train.save_minutes;
  const bool by_time = minutes > 0 && since_saved_.seconds() >= 60 * minutes;
  return is_true_anywhere(*run_->control.group, by_time, "asking whether to save") || is_due(step, options_.save_every);
}

Status StageFiles::save(std::int64_t step, const CheckpointParts& parts) {
  if (saved_ == step) return Done{};
  Collectives& group = *run_->control.group;
  CARNOT_RETURN_IF_ERROR(check_same_weights(group, parts.bundle->policy->trained(), "the weights to write"));
  const OptimizerStates optimizers = optimizer_states(parts);
  const Status written = on_first_rank(group, "writing a checkpoint", [&]() -> Status {
    CARNOT_RETURN_IF_ERROR(options_.restore());
    CARNOT_RETURN_IF_ERROR(writer_->sync());
    return save_checkpoint(options_.folder.checkpoints(), step, parts, optimizers, run_->recipe.run,
                           run_->recipe.train);
  });
  since_saved_ = Stopwatch();
  if (written && parts.unwritten_metrics.empty()) saved_ = step;
  return written;
}

}  // namespace carnot
