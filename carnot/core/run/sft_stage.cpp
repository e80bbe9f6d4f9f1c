#include "carnot/core/base/stopwatch.h"
#include "carnot/core/run/console_lines.h"
#include "carnot/core/run/stage_files.h"
#include "carnot/core/run/stages.h"
#include "carnot/core/run/stopping.h"
#include "carnot/core/train/sft.h"
#include "carnot/core/train/shard_work.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSft = "SFT";

StepMetrics sft_metrics(const SftMetrics& m) {
  return {{"sft/loss", m.loss},
          {"sft/context_loss", m.context_loss},
          {"sft/grad_norm", m.grad_norm},
          {"sft/lr", m.learning_rate},
          {"sft/tokens", static_cast<double>(m.tokens)},
          {"sft/demonstrations", static_cast<double>(m.demonstrations)}};
}

bool is_logged(const SftOptions& options, std::int64_t done) {
  return (done - 1) % options.log_every == 0 || done == options.steps;
}

/// Opens what the stage writes, and loads the checkpoint that it continues from, if there is one.
Result<StageFiles> open_files(const Run& run, CheckpointParts parts, const StartPlan& plan) {
  const SftOptions& sft = run.recipe.sft;
  StageFiles::Options options{.folder = plan.folder};
  options.is_logged = [&sft](std::int64_t done) { return is_logged(sft, done); };
  if (plan.checkpoint) {
    const fs::path& checkpoint = plan.checkpoint->path;
    if (plan.step() >= sft.steps) parts.optimizer = nullptr;
    CARNOT_ASSIGN_OR_RETURN(
        const auto state,
        agreed(*run.control.group, load_checkpoint(checkpoint, parts, run.recipe.run), "loading the checkpoint"));
    options.resume_step = state.step;
    if (lies_in(checkpoint, plan.folder.checkpoints())) options.saved = state.step;
  }
  return StageFiles::open(run, options);
}

/// One step, with its line of metrics and the checkpoint that is due after it.
Result<SftMetrics> take_step(Run& run, StageFiles& files, SftTrainer& trainer, std::int64_t step,
                             const CheckpointParts& parts) {
  const SftOptions& options = run.recipe.sft;
  auto metrics = trainer.step(step);
  if (!metrics) return metrics;
  const std::int64_t done = step + 1;
  if (is_logged(options, done)) {
    CARNOT_RETURN_IF_ERROR(files.write_metrics(done, sft_metrics(*metrics)));
    run.tracking.metrics(kSftStage, done, sft_metrics(*metrics));
  }
  run.progress.update(done);
  if (done < options.steps && files.save_is_due(done)) CARNOT_RETURN_IF_ERROR(files.save(done, parts));
  return metrics;
}

/// What comes after SFT in a training run has its own optimizer, and begins with the last checkpoint.
Status save_last(const Run& run, StageFiles& files, CheckpointParts parts) {
  const fs::path checkpoints = files.options().folder.checkpoints();
  const bool is_alone = files.options().folder.root == run.folder.root;
  if (!is_alone) parts.optimizer = nullptr;
  const Status saved = files.save(run.recipe.sft.steps, parts);
  if (!saved || is_alone || run.recipe.train.max_checkpoints == 0) return saved;
  return on_first_rank(*run.control.group, "clearing away checkpoints",
                       [&] { return prune_checkpoints(checkpoints, 1); });
}

/// The steps from `first` on.
Result<RunEnd> take_steps(Run& run, StageFiles& files, SftTrainer& trainer, std::int64_t first,
                          const CheckpointParts& parts) {
  const std::int64_t steps = run.recipe.sft.steps;
  const Stopwatch watch;
  double loss = 0;
  std::int64_t updates = 0;
  run.progress.begin(kSft, steps, first);
  run.tracking.stage(kSftStage, first, steps);
  for (std::int64_t step = first; step < steps; ++step) {
    if (stop_is_requested(run)) {
      CARNOT_RETURN_IF_ERROR(files.save(step, parts));
      return stopped(run, after_step(kSft, step));
    }
    CARNOT_ASSIGN_OR_RETURN(const auto metrics, take_step(run, files, trainer, step, parts));
    loss = metrics.loss;
    updates += metrics.skipped ? 0 : 1;
  }
  run.progress.end();
  if (first == steps) return RunEnd::Complete;
  run.progress.print(sft_line({.step = steps, .steps = steps, .width = run.progress.width()}, loss, watch.seconds()));
  CARNOT_RETURN_IF_ERROR(save_last(run, files, parts));
  if (updates == 0) return Error{std::string(kSft) + ": " + kAllSkipped};
  return RunEnd::Complete;
}

}  // namespace

Result<RunEnd> sft_stage(Run& run, ModelBundle& bundle, const StartPlan& plan) {
  const SftOptions& options = run.recipe.sft;
  bundle.policy->requires_grad(true);
  ShardWork work(*run.control.group, run.recipe.train);
  const auto optimizer = work.make_optimizer(optimizer_weights(bundle.policy->trained()), options.optimizer);
  const CheckpointParts parts{.bundle = &bundle, .optimizer = optimizer.get()};
  CARNOT_ASSIGN_OR_RETURN(auto files, open_files(run, parts, plan));
  SftTrainer trainer(*bundle.policy, work, *optimizer,
                     {.environment = *run.recipe.environment,
                      .chat = *bundle.chat,
                      .options = options,
                      .episode = run.recipe.rollout.options.episode,
                      .micro_batch_tokens = run.recipe.train.micro_batch_tokens,
                      .seed = static_cast<std::uint64_t>(run.recipe.run.seed)});
  return take_steps(run, files, trainer, files.options().resume_step, parts);
}

}  // namespace carnot
