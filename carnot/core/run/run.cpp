#include "carnot/core/run/run.h"

#include <functional>

#include "carnot/core/base/file.h"
#include "carnot/core/base/log.h"
#include "carnot/core/data/rollout_file.h"
#include "carnot/core/nn/linear.h"
#include "carnot/core/run/checkpoint.h"
#include "carnot/core/run/rollout_service.h"
#include "carnot/core/run/stages.h"
#include "carnot/core/run/start.h"
#include "carnot/core/run/stopping.h"
#include "carnot/core/train/infra_failures.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

std::int64_t num_values(const std::vector<NamedTensor>& tensors) {
  std::int64_t sum = 0;
  for (const NamedTensor& named : tensors) sum += named.tensor.numel();
  return sum;
}

void log_warnings(const Method& method) {
  for (const std::string& warning : method.warnings) log_warning(warning);
}

bool has_random_weights(const Recipe& recipe, const ModelBundle& bundle) {
  return recipe.model.path.empty() && !bundle.checkpoint;
}

void announce(const Run& run, const ModelBundle& bundle) {
  run.control.out << run.recipe.environment_name << ", " << run.recipe.method.name << ": "
                  << bundle.policy->config().num_parameters() << " parameters"
                  << (has_random_weights(run.recipe, bundle) ? " (random weights)" : "") << ", vocabulary "
                  << bundle.tokenizer->vocab_size() << ", seed " << run.recipe.run.seed << "\n";
  if (bundle.policy->head().is_cpu())
    run.control.out << "Kernels: " << kernel_sets(bundle.policy->head().scalar_type()) << "\n";
  const LoraOptions& lora = bundle.policy->lora();
  if (lora.rank > 0)
    run.control.out << "Adapters of rank " << lora.rank << " are trained: " << num_values(bundle.policy->adapters())
                    << " numbers\n";
  if (lora.rank > 0 && run.recipe.model.path.empty())
    log_warning("lora.rank: the weights below the adapters are random and stay so; expected a model.path");
  if (has_random_weights(run.recipe, bundle) && run.recipe.sft.steps == 0)
    log_warning("training starts from random weights; expected a model.path, or sft.steps");
  note_few_tasks(run.recipe);
  log_warnings(run.recipe.method);
}

std::string counted_steps(std::int64_t steps) { return std::to_string(steps) + (steps == 1 ? " step" : " steps"); }

/// "Ahead: SFT of 1000 steps, training of 130 steps"; of a run that continues "Ahead: training of 130 steps, of which
/// 60 are done".
void announce_steps(const Run& run, const ModelBundle& bundle, const StartPlan& plan) {
  run.control.out << "Ahead: ";
  if (!bundle.checkpoint && run.recipe.sft.steps > 0)
    run.control.out << "SFT of " << counted_steps(run.recipe.sft.steps) << ", ";
  run.control.out << "training of " << counted_steps(run.recipe.train.steps);
  if (run.recipe.train.max_sampled_tokens > 0)
    run.control.out << " or " << run.recipe.train.max_sampled_tokens << " sampled tokens";
  if (plan.checkpoint) run.control.out << ", of which " << plan.step() << " are done";
  run.control.out << "\n";
}

/// A fresh policy, after SFT if the recipe says so.
Result<RunEnd> sft_before_training(Run& run, ModelBundle& bundle) {
  if (run.recipe.sft.steps == 0) return RunEnd::Complete;
  const RunFolder folder{run.folder.root / "warm_start"};
  CARNOT_ASSIGN_OR_RETURN(const auto started, start_stage(run.recipe, folder, *run.control.group));
  return sft_stage(run, bundle, started.plan);
}

StepMetrics metrics_of(const Run& run, const EvaluatedGroups& evaluated) {
  return evaluation_metrics(evaluated.evaluation, run.recipe.environment_name, run.recipe.evaluation.samples);
}

/// Runs the stages and reports the end to the tracker.
Result<RunEnd> tracked(Run& run, const std::function<Result<RunEnd>()>& stages) {
  auto end = stages();
  if (!end)
    run.tracking.end("failed", end.error().message);
  else if (*end == RunEnd::Alarm)
    run.tracking.end("failed", "an alarm ended the run (alarm.stop)");
  else
    run.tracking.end(*end == RunEnd::Complete ? "complete" : "interrupted");
  return end;
}

/// Lets workers roll out the trainer's first `steps` steps, where the recipe says so; rank 0 meets them, for all. Null
/// on the others, where the run was stopped meanwhile, or where the recipe asks for no workers.
Result<std::unique_ptr<RolloutService>> meet_workers(Recipe& recipe, ModelBundle& bundle, Trainer& trainer,
                                                     const fs::path& folder, std::int64_t steps,
                                                     const RunControl& control) {
  if (recipe.rollout.workers.address.empty()) return std::unique_ptr<RolloutService>();
  std::unique_ptr<RolloutService> workers;
  const std::string problem = await_first_rank(
      *control.group,
      [&](const std::function<bool()>& go_on) {
        auto opened = open_rollout_service(recipe, bundle, folder, steps, go_on);
        if (opened) workers = std::move(opened).value();
        return opened ? std::string() : opened.error().message;
      },
      [&control] { return !control.stop_requested(); }, "meeting the NATS server");
  if (!problem.empty()) return Error{problem};
  if (workers) control.out << "Workers roll out: carnot worker " << recipe.rollout.workers.address << std::endl;
  trainer.roll_out_elsewhere([rollouts = workers.get()](const StepTasks& tasks, const RolloutEvents& events) {
    return rollouts ? rollouts->roll_out(tasks, events) : Rollout{.stopped = true};
  });
  return workers;
}

/// What the checkpoint holds, into the bundle and the trainer; without one, the state of a run at its beginning.
Result<TrainerState> load_state(const Run& run, ModelBundle& bundle, Trainer& trainer) {
  if (!bundle.checkpoint) return TrainerState();
  const CheckpointParts parts{
      .bundle = &bundle, .optimizer = &trainer.optimizer(), .critic_optimizer = trainer.critic_optimizer()};
  auto loaded =
      agreed(*run.control.group, load_checkpoint(*bundle.checkpoint, parts, run.recipe.run), "loading the checkpoint");
  if (loaded) trainer.set_coefficients(loaded->coefficients);
  return loaded;
}

Result<RunEnd> train_from(Run& run, ModelBundle& bundle, const StartPlan& plan) {
  announce(run, bundle);
  announce_steps(run, bundle, plan);
  if (!bundle.checkpoint) {
    const auto end = sft_before_training(run, bundle);
    if (!end || *end == RunEnd::Interrupted) return end;
  }
  bundle.add_companions(run.recipe);
  Trainer trainer(run.recipe, bundle, *run.control.group);
  CARNOT_ASSIGN_OR_RETURN(const auto loaded, load_state(run, bundle, trainer));
  const TrainerState& state = loaded;
  CARNOT_ASSIGN_OR_RETURN(
      auto workers, meet_workers(run.recipe, bundle, trainer, run.folder.root, run.recipe.train.steps, run.control));
  run.workers = std::move(workers);
  // A step whose evaluation was stopped is reported again.
  run.tracking.stage(kTrainingStage, state.unwritten_metrics.empty() ? state.step : state.step - 1,
                     run.recipe.train.steps);
  std::optional<EvaluatedGroups> before;
  if (run.recipe.evaluation.before_training) {
    const auto evaluation = state.step > 0 ? kept_or_new_evaluation : evaluation_stage;
    CARNOT_ASSIGN_OR_RETURN(auto evaluated, evaluation(run, "before", bundle, trainer.engine()));
    if (!evaluated) return stopped(run, "in the evaluation before training; what SFT learned is kept");
    before = std::move(evaluated);
    run.tracking.metrics(kTrainingStage, 0, metrics_of(run, *before));
  }
  const bool begins = before && state.step == 0;
  const auto end = reinforcement_stage(run, bundle, trainer, state, begins ? metrics_of(run, *before) : StepMetrics());
  if (!end || *end != RunEnd::Complete) return end;
  const auto after = evaluation_stage(run, "after", bundle, trainer.engine());
  if (!after) return after.error();
  if (!*after) return stopped(run, "in the evaluation after training; a checkpoint is written");
  run.tracking.metrics(kTrainingStage, run.trained_steps, metrics_of(run, **after));
  CARNOT_RETURN_IF_ERROR(summary_stage(run, bundle, before, **after));
  return RunEnd::Complete;
}

Result<RunEnd> sft_from(Run& run, ModelBundle& bundle, const StartPlan& plan) {
  announce(run, bundle);
  const auto end = sft_stage(run, bundle, plan);
  if (!end || *end == RunEnd::Interrupted) return end;
  if (run.recipe.evaluation.tasks > 0) {
    const Generation generation = make_generation(bundle, run.recipe.rollout, run.recipe.step_trajectories());
    const auto after = evaluation_stage(run, "after", bundle, *generation.engine);
    if (!after) return after.error();
    if (!*after) return stopped(run, "in the evaluation after SFT; a checkpoint is written");
    run.tracking.metrics(kSftStage, run.recipe.sft.steps, metrics_of(run, **after));
    run.control.out << evaluation_table({{"after", (*after)->evaluation}}, run.recipe.evaluation.breakdown);
  }
  run.control.out << "\nRun folder: " << run.folder.root.string() << "\n";
  return RunEnd::Complete;
}

}  // namespace

Result<RunEnd> run_training(Recipe& recipe, const RunControl& control) {
  CARNOT_ASSIGN_OR_RETURN(auto started, start_run(recipe, MemoryStage::Training, control));
  Run run(recipe, control, started);
  return tracked(run, [&] { return train_from(run, started.bundle, started.plan); });
}

Result<RunEnd> run_sft(Recipe& recipe, const RunControl& control) {
  if (recipe.sft.steps == 0) return Error{"sft.steps: is 0; expected how many steps SFT takes"};
  CARNOT_ASSIGN_OR_RETURN(auto started, start_run(recipe, MemoryStage::Sft, control));
  Run run(recipe, control, started);
  return tracked(run, [&] { return sft_from(run, started.bundle, started.plan); });
}

Result<RunEnd> run_rollout(Recipe& recipe, const RunControl& control) {
  Collectives& group = *control.group;
  CARNOT_ASSIGN_OR_RETURN(auto started, start_run(recipe, MemoryStage::Rollout, control));
  log_warnings(recipe.method);
  ModelBundle& bundle = started.bundle;
  const RunFolder& folder = started.plan.folder;
  bundle.add_companions(recipe);
  Trainer trainer(recipe, bundle, group);
  CARNOT_ASSIGN_OR_RETURN(const auto workers, meet_workers(recipe, bundle, trainer, folder.root, 1, control));
  auto step = control.stop_requested()
                  ? std::nullopt
                  : trainer.roll_out_and_measure(0, {.go_on = [&control] { return !control.stop_requested(); }});
  if (!step) {
    CARNOT_RETURN_IF_ERROR(why_not(workers.get(), group));
    control.out << "Stopped; nothing is written\n";
    return RunEnd::Interrupted;
  }
  for (Group& group : step->groups) group.step = 0;
  const auto decode = [&](std::span<const TokenId> tokens) { return bundle.tokenizer->decode(tokens); };
  const fs::path path = folder.rollouts(0);
  CARNOT_RETURN_IF_ERROR(on_first_rank(group, "writing the rollouts", [&]() -> Status {
    CARNOT_RETURN_IF_ERROR(write_file_atomically(path, rollout_rows(step->groups, step->credit, decode)));
    return write_file_atomically(folder.root / "tokenizer.json", bundle.tokenizer->json());
  }));
  control.out << trajectories(step->groups).size() << " trajectories in " << path.string() << "\n";
  CARNOT_RETURN_IF_ERROR(check_failures(count_failures(step->groups), recipe.train.max_infra_failures, step->failures));
  return RunEnd::Complete;
}

}  // namespace carnot
