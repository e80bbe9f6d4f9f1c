#include <algorithm>
#include <iterator>

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
  StepMetrics metrics{{"sft/loss", m.loss},
                      {"sft/grad_norm", m.grad_norm},
                      {"sft/lr", m.learning_rate},
                      {"sft/tokens", static_cast<double>(m.tokens)},
                      {"sft/demonstrations", static_cast<double>(m.demonstrations)}};
  if (m.context_loss > 0) metrics["sft/context_loss"] = m.context_loss;
  if (m.router_aux_loss > 0) metrics["sft/router_aux_loss"] = m.router_aux_loss;
  return metrics;
}

bool is_evaluated(const Run& run, std::int64_t done) {
  const SftOptions& options = run.recipe.sft;
  return !run.demonstrations.held_out.empty() && (is_due(done, options.eval_every) || done == options.steps);
}

bool is_logged(const Run& run, std::int64_t done) {
  const SftOptions& options = run.recipe.sft;
  return (done - 1) % options.log_every == 0 || done == options.steps || is_evaluated(run, done);
}

/// "SFT on 90 demonstrations, 10 more held out: 6120 tokens, 2040 of them said; an epoch takes 3 steps"
void announce_rows(const Run& run) {
  const auto& [train, held_out] = run.demonstrations;
  if (train.empty()) return;
  std::int64_t tokens = 0, said = 0;
  for (const Demonstration& one : train) {
    tokens += std::ssize(one.tokens);
    said += std::ranges::count(one.is_said, true);
  }
  const std::int64_t steps = (tokens + run.recipe.sft.batch_tokens - 1) / run.recipe.sft.batch_tokens;
  run.control.out << "SFT on " << train.size() << " demonstrations, " << held_out.size() << " more held out: " << tokens
                  << " tokens, " << said << " of them said; an epoch takes " << steps
                  << (steps == 1 ? " step\n" : " steps\n");
}

/// Opens what the stage writes, and loads the checkpoint that it continues from, if there is one.
Result<StageFiles> open_files(const Run& run, CheckpointParts parts, const StartPlan& plan) {
  StageFiles::Options options{.folder = plan.folder};
  options.is_logged = [&run](std::int64_t done) { return is_logged(run, done); };
  if (plan.checkpoint) {
    const fs::path& checkpoint = plan.checkpoint->path;
    if (plan.step() >= run.recipe.sft.steps) parts.optimizer = nullptr;
    CARNOT_ASSIGN_OR_RETURN(
        const auto state,
        agreed(*run.control.group, load_checkpoint(checkpoint, parts, run.recipe.run), "loading the checkpoint"));
    options.resume_step = state.step;
    if (lies_in(checkpoint, plan.folder.checkpoints())) options.saved = state.step;
  }
  return StageFiles::open(run, options);
}

/// What one step measured, and whether it changed the weights.
struct TakenStep {
  StepMetrics metrics{};
  bool skipped = false;
};

/// One step, with its line of metrics and the checkpoint that is due after it.
Result<TakenStep> take_step(Run& run, StageFiles& files, SftTrainer& trainer, std::int64_t step,
                            const CheckpointParts& parts) {
  CARNOT_ASSIGN_OR_RETURN(const auto taken, trainer.step(step));
  StepMetrics metrics = sft_metrics(taken);
  const std::int64_t done = step + 1;
  if (is_evaluated(run, done)) metrics["val/loss"] = trainer.held_out_loss();
  if (is_logged(run, done)) {
    CARNOT_RETURN_IF_ERROR(files.write_metrics(done, metrics));
    run.tracking.metrics(kSftStage, done, metrics);
  }
  run.progress.update(done);
  if (done < run.recipe.sft.steps && files.save_is_due(done)) CARNOT_RETURN_IF_ERROR(files.save(done, parts));
  return TakenStep{std::move(metrics), taken.skipped};
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
  std::int64_t updates = 0;
  const auto print = [&](std::int64_t done, const StepMetrics& metrics) {
    run.progress.print(
        sft_line({.step = done, .steps = steps, .width = run.progress.width()}, metrics, watch.seconds()));
  };
  run.progress.begin(kSft, steps, first);
  run.tracking.stage(kSftStage, first, steps);
  for (std::int64_t step = first; step < steps; ++step) {
    if (stop_is_requested(run)) {
      CARNOT_RETURN_IF_ERROR(files.save(step, parts));
      return stopped(run, after_step(kSft, step));
    }
    CARNOT_ASSIGN_OR_RETURN(const auto taken, take_step(run, files, trainer, step, parts));
    updates += taken.skipped ? 0 : 1;
    if (step + 1 == steps || is_evaluated(run, step + 1)) print(step + 1, taken.metrics);
  }
  run.progress.end();
  if (first == steps) return RunEnd::Complete;
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
  announce_rows(run);
  SftTrainer trainer(*bundle.policy, work, *optimizer,
                     {.environment = *run.recipe.environment,
                      .chat = *bundle.chat,
                      .options = options,
                      .episode = run.recipe.rollout.options.episode,
                      .rows = &run.demonstrations,
                      .micro_batch_tokens = run.recipe.train.micro_batch_tokens,
                      .router_aux_coefficient = run.recipe.train.router_aux_coefficient,
                      .share_prefixes = run.recipe.train.shared_prefixes == "once",
                      .seed = static_cast<std::uint64_t>(run.recipe.run.seed)});
  return take_steps(run, files, trainer, files.options().resume_step, parts);
}

}  // namespace carnot
