#include "carnot/run/stages.h"

#include <cstdio>

#include "carnot/base/file.h"
#include "carnot/base/json.h"
#include "carnot/base/log.h"
#include "carnot/base/printable.h"
#include "carnot/base/stopwatch.h"
#include "carnot/data/rollout_write.h"
#include "carnot/run/console_lines.h"
#include "carnot/run/group_start.h"
#include "carnot/run/machine_memory.h"
#include "carnot/run/metrics_writer.h"
#include "carnot/train/infra_failures.h"
#include "carnot/train/sft.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

StepMetrics sft_metrics(const SftMetrics& m) {
  return {{"sft/loss", m.loss},
          {"sft/context_loss", m.context_loss},
          {"sft/grad_norm", m.grad_norm},
          {"sft/lr", m.learning_rate},
          {"sft/tokens", static_cast<double>(m.tokens)},
          {"sft/demonstrations", static_cast<double>(m.demonstrations)}};
}

Status write_rollouts(const Run& run, const ModelBundle& bundle, std::int64_t step, const TrainingStep& result) {
  if (!run.recipe.train.keep_rollouts) return Done{};
  const auto decode = [&](std::span<const TokenId> tokens) { return bundle.tokenizer->decode(tokens); };
  return on_first_rank(*run.control.group, "writing rollouts", [&] {
    return write_file_atomically(run.folder.rollouts(step), rollout_rows(result.groups, result.credit, decode));
  });
}

void track_step(Run& run, const ModelBundle& bundle, std::int64_t step, const TrainingStep& result) {
  run.tracking.transcripts(step, result.groups,
                           [&](std::span<const TokenId> tokens) { return bundle.tokenizer->decode(tokens); });
}

CheckpointParts parts_of(ModelBundle& bundle, Trainer& trainer) {
  return {.bundle = &bundle,
          .optimizer = &trainer.optimizer(),
          .critic_optimizer = trainer.critic_optimizer(),
          .coefficients = trainer.coefficients()};
}

RolloutEvents stoppable(const RunControl& control) {
  return {.go_on = [&control] { return !control.stop_requested(); }};
}

// How the message of a run that cannot continue ends.
constexpr const char* kHowToContinue = "A checkpoint is written; to continue, run the same command with resume=auto";
constexpr const char* kSkipped =
    "all were left out, since their gradients are not finite. The last checkpoint is written";

std::string after_step(const std::string& stage, std::int64_t step) {
  return "after " + stage + " step " + std::to_string(step) + "; a checkpoint is written";
}

bool is_due(std::int64_t step, std::int64_t every) { return every > 0 && step % every == 0; }

/// Adds the evaluation after step `step` to its metrics.
Result<RunEnd> evaluate_step(Run& run, ModelBundle& bundle, Trainer& trainer, std::int64_t step, StepMetrics& metrics) {
  const auto evaluated = evaluation_stage(run, "step_" + std::to_string(step), bundle, trainer.engine());
  if (!evaluated) return evaluated.error();
  if (!*evaluated) return RunEnd::Interrupted;
  metrics.merge(
      evaluation_metrics((*evaluated)->evaluation, run.recipe.environment_name, run.recipe.evaluation.samples));
  return RunEnd::Complete;
}

/// Whether anyone asked any rank to stop.
bool stop_is_requested(const Run& run) {
  return is_true_anywhere(*run.control.group, run.control.stop_requested(), "asking whether to stop");
}

/// Rank 0's.
using CommonWriter = std::optional<MetricsWriter>;

Result<CommonWriter> open_writer(const Run& run, const MetricsWriter::Options& options) {
  return made_on_first_rank(*run.control.group, "opening the metrics", [&] { return MetricsWriter::open(options); });
}

Status write_metrics(const Run& run, CommonWriter& writer, std::int64_t step, const StepMetrics& metrics) {
  return on_first_rank(*run.control.group, "writing metrics", [&] { return writer->write(step, metrics); });
}

/// A checkpoint behind its metrics.
Status save_behind_metrics(const Run& run, CommonWriter& writer, const std::function<Status()>& save) {
  return on_first_rank(*run.control.group, "writing a checkpoint", [&]() -> Status {
    if (const Status synced = writer->sync(); !synced) return synced;
    return save();
  });
}

Status finish_step(Run& run, CommonWriter& writer, std::int64_t step, const StepMetrics& metrics) {
  if (const Status status = write_metrics(run, writer, step, metrics); !status) return status;
  run.tracking.metrics(kTrainingStage, step, metrics);
  run.progress.update(step);  // first, so that the bar below the line knows the step
  run.progress.print(step_line({.step = step, .steps = run.recipe.train.steps, .width = run.progress.width()}, metrics,
                               run.recipe.environment_name));
  return Done{};
}

bool is_in(const fs::path& checkpoint, const fs::path& checkpoints) {
  std::error_code ignored;
  return fs::equivalent((fs::absolute(checkpoint) / "").lexically_normal().parent_path().parent_path(), checkpoints,
                        ignored);
}

Result<std::optional<FoundCheckpoint>> named_checkpoint(const fs::path& path, const fs::path& checkpoints) {
  if (const Status status = verify_checkpoint(path); !status) return status.error();
  const auto step = checkpoint_step(path);
  if (!step) return step.error();
  const auto latest = latest_checkpoint(checkpoints);
  if (latest && *latest && (!is_in(path, checkpoints) || (*latest)->step != *step))
    return Error{"resume: " + path.string() + ": the run would write over " + (*latest)->path.string() +
                 "; expected that checkpoint, or another run_folder"};
  return std::optional(FoundCheckpoint{.step = *step, .path = path});
}

}  // namespace

RunEnd stopped(Run& run, const std::string& where) {
  run.progress.print("Stopped " + where + ".\nTo continue, run the same command with resume=auto");
  return RunEnd::Interrupted;
}

Result<std::optional<FoundCheckpoint>> checkpoint_to_resume(const RunOptions& run, const fs::path& checkpoints) {
  if (run.resume == "never") return std::optional<FoundCheckpoint>();
  if (const Status repaired = repair_checkpoints(checkpoints); !repaired) return repaired.error();
  if (run.resume != "auto") return named_checkpoint(run.resume, checkpoints);
  auto found = latest_checkpoint(checkpoints);
  if (!found || !*found) return found;
  for (const std::string& damage : (*found)->damaged)
    log_warning("skipped a damaged checkpoint: " + damage + "; the run continues from " + (*found)->path.string());
  return found;
}

Status settle_checkpoints(const fs::path& checkpoints, const std::optional<FoundCheckpoint>& checkpoint,
                          const TrainOptions& options) {
  if (!checkpoint || !is_in(checkpoint->path, checkpoints)) return Done{};
  const auto removed = go_on_from(checkpoints, checkpoint->step, options.max_checkpoints);
  if (!removed) return removed.error();
  for (const fs::path& path : *removed)
    log_warning(path.string() + ": removed; it is damaged, and its steps come again");
  return Done{};
}

Result<RunEnd> sft_stage(Run& run, const RunFolder& folder, ModelBundle& bundle,
                         const std::optional<FoundCheckpoint>& checkpoint) {
  const SftOptions& options = run.recipe.sft;
  bundle.policy->requires_grad(true);
  ShardWork work(*run.control.group, run.recipe.train);
  const auto optimizer = work.make_optimizer(optimizer_parameters(bundle.policy->trained()), options.optimizer);
  const CheckpointParts parts{.bundle = &bundle, .optimizer = optimizer.get()};
  std::int64_t first = 0;
  const Status settled = on_first_rank(*run.control.group, "clearing away checkpoints", [&] {
    return settle_checkpoints(folder.checkpoints(), checkpoint, run.recipe.train);
  });
  if (!settled) return settled.error();
  std::optional<std::int64_t> saved;
  if (checkpoint) {
    const auto state =
        agreed(*run.control.group, load_checkpoint(checkpoint->path, parts, run.recipe.run), "loading the checkpoint");
    if (!state) return state.error();
    first = state->step;
    if (is_in(checkpoint->path, folder.checkpoints())) saved = first;
  }
  const auto is_logged = [&](std::int64_t done) {
    return (done - 1) % options.log_every == 0 || done == options.steps;
  };
  auto writer = open_writer(
      run,
      {.jsonl = folder.metrics(), .tensorboard = folder.tensorboard(), .resume_step = first, .is_logged = is_logged});
  if (!writer) return writer.error();
  SftTrainer trainer(*bundle.policy, work, *optimizer,
                     {.environment = *run.recipe.environment,
                      .chat = *bundle.chat,
                      .options = options,
                      .episode = run.recipe.rollout.options.episode,
                      .micro_batch_tokens = run.recipe.train.micro_batch_tokens,
                      .seed = static_cast<std::uint64_t>(run.recipe.run.seed)});
  const auto save = [&](std::int64_t step) -> Status {
    if (saved == step) return Done{};
    const OptimizerStates optimizers = optimizer_states(parts);
    const Status written = save_behind_metrics(run, *writer, [&] {
      return save_checkpoint(folder.checkpoints(), step, parts, optimizers, run.recipe.run,
                             run.recipe.train.max_checkpoints);
    });
    if (written) saved = step;
    return written;
  };
  const std::string stage = "SFT";
  const Stopwatch watch;
  double loss = 0;
  std::int64_t updates = 0;
  run.progress.begin(stage, options.steps, first);
  run.tracking.stage(kSftStage, first, options.steps);
  for (std::int64_t step = first; step < options.steps; ++step) {
    if (stop_is_requested(run)) {
      if (const Status status = save(step); !status) return status.error();
      return stopped(run, after_step(stage, step));
    }
    const auto metrics = trainer.step(step);
    if (!metrics) return metrics.error();
    if (is_logged(step + 1)) {
      if (const Status status = write_metrics(run, *writer, step + 1, sft_metrics(*metrics)); !status)
        return status.error();
      run.tracking.metrics(kSftStage, step + 1, sft_metrics(*metrics));
    }
    loss = metrics->loss;
    updates += metrics->skipped ? 0 : 1;
    run.progress.update(step + 1);
  }
  run.progress.end();
  if (first == options.steps) return RunEnd::Complete;
  run.progress.print(
      sft_line({.step = options.steps, .steps = options.steps, .width = run.progress.width()}, loss, watch.seconds()));
  if (const Status status = save(options.steps); !status) return status.error();
  if (updates == 0) return Error{stage + ": no update changed the weights; " + kSkipped};
  return RunEnd::Complete;
}

std::optional<EvaluatedGroups> evaluate_with_bar(const EvaluationView& view, std::string_view title,
                                                 const Recipe& recipe, const ModelBundle& bundle, Engine& engine) {
  const EvaluationOptions& options = recipe.evaluation;
  RolloutEvents events = stoppable(view.control);
  events.on_progress = [&view](std::int64_t ended) { view.progress.update(ended); };
  view.progress.begin(title, options.tasks * options.samples);
  auto evaluated = evaluate({.group = *view.control.group,
                             .engine = engine,
                             .chat = *bundle.chat,
                             .environment = *recipe.environment,
                             .environment_name = recipe.environment_name,
                             .options = options,
                             .rollout = recipe.rollout.options,
                             .seed = static_cast<std::uint64_t>(recipe.run.seed)},
                            events);
  view.progress.end();
  if (evaluated) warn_of_failures("evaluation", evaluated->failures);
  return evaluated;
}

Status check_evaluation(const std::string& name, const EvaluatedGroups& evaluated, const Recipe& recipe) {
  const Status few =
      check_failures(count_failures(evaluated.groups), recipe.train.max_infra_failures, evaluated.failures);
  return few ? few : Error{"evaluation " + name + ": " + few.error().message};
}

Result<std::optional<EvaluatedGroups>> evaluation_stage(Run& run, const std::string& name, ModelBundle& bundle,
                                                        Engine& engine) {
  auto evaluated = evaluate_with_bar({run.progress, run.control}, "evaluation " + name, run.recipe, bundle, engine);
  if (!evaluated) return evaluated;
  run.progress.print(evaluation_line(name, evaluated->evaluation, run.progress.width()));
  const Status stored = on_first_rank(*run.control.group, "writing an evaluation", [&] {
    return store_evaluation(run.folder.root, name, *evaluated, *bundle.tokenizer);
  });
  if (!stored) return stored.error();
  if (const Status status = check_evaluation(name, *evaluated, run.recipe); !status) return status.error();
  return evaluated;
}

Result<std::optional<EvaluatedGroups>> kept_or_new_evaluation(Run& run, const std::string& name, ModelBundle& bundle,
                                                              Engine& engine) {
  Collectives& group = *run.control.group;
  const bool exists = group.rank() == 0 && fs::exists(run.folder.root / "validation" / (name + ".jsonl"));
  if (!is_true_anywhere(group, exists, "looking for an evaluation")) return evaluation_stage(run, name, bundle, engine);
  auto kept =
      agreed(group, load_evaluation(run.folder.root, name, run.recipe.evaluation.breakdown), "loading an evaluation");
  if (!kept) return kept.error();
  return std::optional(std::move(kept).value());
}

Result<RunEnd> reinforcement_stage(Run& run, ModelBundle& bundle, Trainer& trainer, const TrainerState& start) {
  const TrainOptions& options = run.recipe.train;
  const bool evaluation_is_due = !start.unwritten_metrics.empty();
  std::int64_t sampled_tokens = start.sampled_tokens;
  const auto is_over = [&](std::int64_t steps) {
    return steps >= options.steps || (options.max_sampled_tokens > 0 && sampled_tokens >= options.max_sampled_tokens);
  };
  auto writer = open_writer(run, {.jsonl = run.folder.metrics(),
                                  .tensorboard = run.folder.tensorboard(),
                                  .resume_step = evaluation_is_due ? start.step - 1 : start.step});
  if (!writer) return writer.error();
  std::optional<std::int64_t> saved;
  if (!evaluation_is_due && bundle.checkpoint && is_in(*bundle.checkpoint, run.folder.checkpoints()))
    saved = start.step;
  const auto save = [&](std::int64_t step, const StepMetrics& unwritten = {}) -> Status {
    if (saved == step) return Done{};
    const Status same = check_same_weights(*run.control.group, bundle.policy->trained(), "the weights to write");
    if (!same) return same;
    CheckpointParts parts = parts_of(bundle, trainer);
    parts.sampled_tokens = sampled_tokens;
    parts.unwritten_metrics = unwritten;
    const OptimizerStates optimizers = optimizer_states(parts);
    const Status written = save_behind_metrics(run, *writer, [&] {
      return save_checkpoint(run.folder.checkpoints(), step, parts, optimizers, run.recipe.run,
                             options.max_checkpoints);
    });
    if (written && unwritten.empty()) saved = step;
    return written;
  };
  const std::string stage = "training";
  const std::int64_t updates_before = trainer.optimizer().num_updates();
  run.progress.begin(run.recipe.method.name, options.steps, start.step);
  if (evaluation_is_due) {
    StepMetrics metrics = start.unwritten_metrics;
    const auto end = evaluate_step(run, bundle, trainer, start.step, metrics);
    if (!end) return end;
    if (*end == RunEnd::Interrupted) return stopped(run, after_step(stage, start.step));
    if (const Status status = finish_step(run, *writer, start.step, metrics); !status) return status.error();
  }
  std::int64_t step = start.step;
  for (; !is_over(step); ++step) {
    auto result = stop_is_requested(run) ? std::nullopt : trainer.step(step, stoppable(run.control));
    if (!result) {
      if (const Status status = save(step); !status) return status.error();
      if (const Status failure = why_not(run.workers.get(), *run.control.group); !failure)
        return Error{failure.error().message + ". " + kHowToContinue};
      return stopped(run, after_step(stage, step));
    }
    if (run.workers) result->metrics.merge(run.workers->take_metrics());
    const std::int64_t done = step + 1;
    if (const Status status = write_rollouts(run, bundle, done, *result); !status) return status.error();
    track_step(run, bundle, done, *result);
    if (!result->trained) {
      if (const Status status = save(step); !status) return status.error();
      return Error{stage + " step " + std::to_string(done) + ": " + result->trained.error().message + ". " +
                   kHowToContinue};
    }
    sampled_tokens += static_cast<std::int64_t>(result->metrics.at("rollout/sampled_tokens"));
    if (is_due(done, run.recipe.evaluation.every) && !is_over(done)) {
      const StepMetrics unwritten = result->metrics;
      const auto end = evaluate_step(run, bundle, trainer, done, result->metrics);
      if (!end) {
        if (const Status status = save(done, unwritten); !status) return status.error();
        return Error{end.error().message + ". " + kHowToContinue};
      }
      if (*end == RunEnd::Interrupted) {
        if (const Status status = save(done, unwritten); !status) return status.error();
        return stopped(run, after_step(stage, done));
      }
    }
    if (const Status status = finish_step(run, *writer, done, result->metrics); !status) return status.error();
    if (is_due(done, options.save_every) && !is_over(done))
      if (const Status status = save(done); !status) return status.error();
  }
  run.progress.end();
  run.trained_steps = step;
  if (step == start.step) return RunEnd::Complete;
  if (const Status status = save(step); !status) return status.error();
  if (trainer.optimizer().num_updates() == updates_before)
    return Error{stage + ": no update changed the weights; " + kSkipped};
  return RunEnd::Complete;
}

Status summary_stage(Run& run, const ModelBundle& bundle, const EvaluatedGroups& before, const EvaluatedGroups& after) {
  const RunOptions& options = run.recipe.run;
  OrderedJson summary{{"environment", run.recipe.environment_name},
                      {"method", run.recipe.method.name},
                      {"seed", options.seed},
                      {"training_steps", run.trained_steps},
                      {"before", parse_json<OrderedJson>(evaluation_json(before.evaluation), "before").value()},
                      {"after", parse_json<OrderedJson>(evaluation_json(after.evaluation), "after").value()}};
  const std::int64_t predicted = run.predicted_memory >> 20, measured = peak_resident_memory() >> 20;
  summary["memory"] = {{"predicted_peak_mib", predicted}, {"measured_peak_mib", measured}};
  const Status status = on_first_rank(*run.control.group, "writing the summary", [&] {
    return write_file_atomically(run.folder.root / "summary.json", summary.dump(2) + "\n");
  });
  if (!status) return status;
  std::ostream& out = run.control.out;
  if (const auto task = telling_task(before.groups, after.groups)) {
    out << "\nOne question, before training:\n\n"
        << printable(transcript(before.groups[*task], *bundle.tokenizer)) << "\nThe same question, after:\n\n"
        << printable(transcript(after.groups[*task], *bundle.tokenizer));
  }
  out << "\n"
      << evaluation_table({{"before", before.evaluation}, {"after", after.evaluation}}, run.recipe.evaluation.breakdown,
                          run.progress.width())
      << "\nMemory: " << measured << " MiB at the peak, " << predicted << " predicted"
      << "\nRun folder: " << run.folder.root.string() << "\n";
  return Done{};
}

}  // namespace carnot
