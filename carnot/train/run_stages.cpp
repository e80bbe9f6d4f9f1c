#include "carnot/train/run_stages.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "carnot/base/file.h"
#include "carnot/base/log.h"
#include "carnot/data/rollout_file.h"
#include "carnot/train/checkpoint.h"
#include "carnot/train/checkpoint_folder.h"
#include "carnot/train/machine_memory.h"
#include "carnot/train/metrics_writer.h"
#include "carnot/train/supervised.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

/// The numbers of a step's line in the terminal; all of them are in metrics.jsonl.
StepMetrics shown(const StepMetrics& metrics, const std::string& environment) {
  StepMetrics line;
  for (const std::string& name :
       {std::string("critic/score/mean"), "env/" + environment + "/success", "env/" + environment + "/format",
        std::string("actor/entropy"), std::string("actor/grad_norm"), std::string("actor/pg_clipfrac"),
        std::string("response_length/mean"), std::string("num_turns/mean"), std::string("timing_s/step")}) {
    const auto found = metrics.find(name);
    if (found != metrics.end()) line[name] = found->second;
  }
  return line;
}

StepMetrics supervised_metrics(const SupervisedMetrics& m) {
  return {{"sft/loss", m.loss},
          {"sft/context_loss", m.context_loss},
          {"sft/grad_norm", m.grad_norm},
          {"sft/lr", m.learning_rate},
          {"sft/tokens", static_cast<double>(m.tokens)},
          {"sft/demonstrations", static_cast<double>(m.demonstrations)}};
}

Status write_rollouts(const Run& run, const Workbench& bench, std::int64_t step, const TrainingStep& result) {
  if (!run.recipe.train.keep_rollouts) return Done{};
  const auto decode = [&](std::span<const TokenId> tokens) { return bench.tokenizer->decode(tokens); };
  return write_file_atomically(run.folder.rollouts(step), rollout_rows(result.groups, result.credit, decode));
}

CheckpointParts parts_of(const Workbench& bench, Trainer& trainer) {
  return {.bench = &bench,
          .optimizer = &trainer.optimizer(),
          .critic_optimizer = trainer.critic_optimizer(),
          .coefficients = trainer.coefficients()};
}

RunEnd interrupted(Run& run, const std::string& stage, std::int64_t step) {
  run.progress.end();
  run.control.out << "Stopped after " << stage << " step " << step
                  << "; a checkpoint is written. To go on: the same command with resume=auto\n";
  return RunEnd::Interrupted;
}

}  // namespace

Result<std::optional<fs::path>> checkpoint_to_resume(const RunOptions& run, const fs::path& checkpoints) {
  if (run.resume == "never") return std::optional<fs::path>();
  if (run.resume != "auto") {
    if (const Status status = verify_checkpoint(run.resume); !status) return status.error();
    return std::optional<fs::path>(run.resume);
  }
  const auto found = latest_checkpoint(checkpoints);
  if (!found) return found.error();
  if (!*found) return std::optional<fs::path>();
  for (const std::string& damage : (*found)->damaged) log_warning("passed over a damaged checkpoint: " + damage);
  return std::optional<fs::path>((*found)->path);
}

Result<RunEnd> supervised_stage(Run& run, const RunFolder& folder, Workbench& bench) {
  const SupervisedOptions& options = run.recipe.sft;
  bench.policy->requires_grad(true);
  AdamW optimizer(optimizer_parameters(bench.policy->trained()), options.optimizer);
  const CheckpointParts parts{.bench = &bench, .optimizer = &optimizer};
  std::int64_t first = 0;
  RunOptions resume = run.recipe.run;
  if (resume.resume != "never") resume.resume = "auto";
  const auto checkpoint = checkpoint_to_resume(resume, folder.checkpoints());
  if (!checkpoint) return checkpoint.error();
  if (*checkpoint) {
    const auto state = load_checkpoint(**checkpoint, parts);
    if (!state) return state.error();
    first = state->step;
  }
  auto writer =
      MetricsWriter::open({.jsonl = folder.metrics(), .tensorboard = folder.tensorboard(), .resume_step = first});
  if (!writer) return writer.error();
  SupervisedTrainer trainer(*bench.policy, optimizer,
                            {.environment = *run.recipe.environment,
                             .chat = *bench.chat,
                             .options = options,
                             .episode = run.recipe.rollout.explore.episode,
                             .micro_batch_tokens = run.recipe.train.micro_batch_tokens,
                             .seed = static_cast<std::uint64_t>(run.recipe.run.seed)});
  const auto save = [&](std::int64_t step) {
    return save_checkpoint(folder.checkpoints(), step, parts, run.recipe.run, run.recipe.train.max_checkpoints);
  };
  run.progress.begin("warm start", options.steps);
  for (std::int64_t step = first; step < options.steps; ++step) {
    if (run.control.stop_requested()) {
      if (const Status status = save(step); !status) return status.error();
      return interrupted(run, "warm start", step);
    }
    const auto metrics = trainer.step(step);
    if (!metrics) return metrics.error();
    if (step % options.log_every == 0 || step + 1 == options.steps)
      if (const Status status = writer->write(step + 1, supervised_metrics(*metrics)); !status) return status.error();
    run.progress.update(step + 1);
  }
  run.progress.end();
  if (first < options.steps)
    if (const Status status = save(options.steps); !status) return status.error();
  return RunEnd::Complete;
}

Result<StoredEvaluation> evaluation_stage(Run& run, const std::string& name, Workbench& bench, Engine& engine,
                                          bool reuse) {
  const EvaluationOptions& options = run.recipe.evaluation;
  if (reuse && fs::exists(run.folder.root / "validation" / (name + ".jsonl")))
    return load_evaluation(run.folder.root, name, options.breakdown);
  run.progress.begin("evaluation", options.tasks * options.samples);
  StoredEvaluation stored;
  stored.evaluation = evaluate(engine, *bench.chat, *run.recipe.environment, options, run.recipe.rollout.explore,
                               static_cast<std::uint64_t>(run.recipe.run.seed), &stored.groups);
  run.progress.end();
  if (const Status status = store_evaluation(run.folder.root, name, stored, *bench.tokenizer); !status)
    return status.error();
  return stored;
}

Result<RunEnd> reinforcement_stage(Run& run, Workbench& bench, Trainer& trainer, std::int64_t first) {
  const TrainOptions& options = run.recipe.train;
  auto writer = MetricsWriter::open(
      {.jsonl = run.folder.metrics(), .tensorboard = run.folder.tensorboard(), .resume_step = first});
  if (!writer) return writer.error();
  const auto save = [&](std::int64_t step) {
    return save_checkpoint(run.folder.checkpoints(), step, parts_of(bench, trainer), run.recipe.run,
                           options.max_checkpoints);
  };
  run.progress.begin(run.recipe.method.name, options.steps);
  for (std::int64_t step = first; step < options.steps; ++step) {
    if (run.control.stop_requested()) {
      if (const Status status = save(step); !status) return status.error();
      return interrupted(run, "training", step);
    }
    TrainingStep result = trainer.step(step);
    const std::int64_t done = step + 1;
    if (run.recipe.evaluation.every > 0 && done % run.recipe.evaluation.every == 0 && done < options.steps) {
      const auto stored = evaluation_stage(run, "step_" + std::to_string(done), bench, trainer.engine(), false);
      if (!stored) return stored.error();
      result.metrics.merge(
          evaluation_metrics(stored->evaluation, run.recipe.environment_name, run.recipe.evaluation.samples));
      run.progress.begin(run.recipe.method.name, options.steps);
    }
    if (const Status status = write_rollouts(run, bench, done, result); !status) return status.error();
    if (const Status status = writer->write(done, result.metrics); !status) return status.error();
    run.progress.print(console_line(done, shown(result.metrics, run.recipe.environment_name)));
    run.progress.update(done);
    if (options.save_every > 0 && done % options.save_every == 0 && done < options.steps)
      if (const Status status = save(done); !status) return status.error();
  }
  run.progress.end();
  if (first < options.steps)
    if (const Status status = save(options.steps); !status) return status.error();
  return RunEnd::Complete;
}

Status summary_stage(Run& run, const Workbench& bench, const StoredEvaluation& before, const StoredEvaluation& after) {
  using Json = nlohmann::ordered_json;
  const RunOptions& options = run.recipe.run;
  Json summary{{"environment", run.recipe.environment_name},
               {"method", run.recipe.method.name},
               {"seed", options.seed},
               {"training_steps", run.recipe.train.steps},
               {"before", Json::parse(evaluation_json(before.evaluation))},
               {"after", Json::parse(evaluation_json(after.evaluation))}};
  const std::int64_t predicted = run.predicted_memory >> 20, measured = peak_resident_memory() >> 20;
  summary["memory"] = {{"predicted_peak_mib", predicted}, {"measured_peak_mib", measured}};
  const Status status = write_file_atomically(run.folder.root / "summary.json", summary.dump(2) + "\n");
  if (!status) return status;
  std::ostream& out = run.control.out;
  if (const auto task = telling_task(before.groups, after.groups)) {
    out << "\nOne question, before training:\n\n"
        << transcript(before.groups[*task], *bench.tokenizer) << "\nThe same question, after:\n\n"
        << transcript(after.groups[*task], *bench.tokenizer);
  }
  out << "\n"
      << evaluation_table({{"before", before.evaluation}, {"after", after.evaluation}}, run.recipe.evaluation.breakdown)
      << "\nMemory: " << measured << " MiB at the peak, " << predicted << " predicted"
      << "\nRun folder: " << run.folder.root.string() << "\n";
  return Done{};
}

}  // namespace carnot
