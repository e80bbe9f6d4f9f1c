#include "carnot/run/run.h"

#include <functional>

#include "carnot/base/file.h"
#include "carnot/base/log.h"
#include "carnot/config/document.h"
#include "carnot/data/rollout_write.h"
#include "carnot/nn/linear.h"
#include "carnot/rollout/compatibility.h"
#include "carnot/run/checkpoint.h"
#include "carnot/run/find_run.h"
#include "carnot/run/folder_lock.h"
#include "carnot/run/memory_advice.h"
#include "carnot/run/memory_budget.h"
#include "carnot/run/resumed_settings.h"
#include "carnot/run/stages.h"
#include "carnot/train/infra_failures.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

Resume resume_of(const Recipe& recipe) { return recipe.run.resume == "never" ? Resume::Never : Resume::Auto; }

/// What can be refused before anything is loaded or written.
Status check_start(const Recipe& recipe) {
  if (const Status status = ModelBundle::prepare_device(recipe.run); !status) return status;
  if (resume_of(recipe) == Resume::Auto || !RunFolder{recipe.run.run_folder}.holds_run()) return Done{};
  return open_run_folder(recipe.run.run_folder, Resume::Never).error();
}

/// Refuses what can be refused first, then takes the folder: what is found there from here on stays so.
Result<FolderLock> lock_folder(const Recipe& recipe) {
  if (const Status status = check_start(recipe); !status) return status.error();
  return FolderLock::take(recipe.run.run_folder);
}

/// Filled once everything else is known to be right: a refused recipe leaves no folder.
Result<RunFolder> open_folder(Recipe& recipe, const std::optional<FoundCheckpoint>& checkpoint) {
  const Resume resume = resume_of(recipe);
  auto folder = open_run_folder(recipe.run.run_folder, resume);
  if (!folder) return folder.error();
  const Status written = write_config(*folder, recipe, checkpoint ? checkpoint->step : 0);
  if (!written) return written.error();
  return folder;
}

/// The configuration of the run to resume; a path to nothing if there is none.
fs::path recorded_config(const Recipe& recipe, const std::optional<FoundCheckpoint>& checkpoint) {
  if (!checkpoint) return RunFolder{recipe.run.run_folder}.config();
  const auto config = find_config(checkpoint->path);
  if (config) return *config;
  log_warning(config.error().message + "; the settings that it was trained with cannot be compared");
  return {};
}

std::int64_t num_values(const std::vector<NamedTensor>& tensors) {
  std::int64_t sum = 0;
  for (const NamedTensor& named : tensors) sum += named.tensor.numel();
  return sum;
}

void log_warnings(const Method& method) {
  for (const std::string& warning : method.warnings) log_warning(warning);
}

void announce(const Run& run, const ModelBundle& bundle) {
  run.control.out << run.recipe.environment_name << ", " << run.recipe.method.name << ": "
                  << bundle.policy->config().num_parameters() << " parameters, vocabulary "
                  << bundle.tokenizer->vocab_size() << ", seed " << run.recipe.run.seed << "\n";
  if (bundle.policy->head().is_cpu())
    run.control.out << "Kernels: " << kernel_sets(bundle.policy->head().scalar_type()) << "\n";
  const LoraOptions& lora = bundle.policy->lora();
  if (lora.rank > 0)
    run.control.out << "Adapters of rank " << lora.rank << " are trained: " << num_values(bundle.policy->adapters())
                    << " numbers\n";
  if (lora.rank > 0 && run.recipe.model.path.empty())
    log_warning("lora.rank: the weights below the adapters are random and stay so; expected a model.path");
  log_warnings(run.recipe.method);
}

std::string counted_steps(std::int64_t steps) { return std::to_string(steps) + (steps == 1 ? " step" : " steps"); }

/// "Ahead: SFT of 1000 steps, training of 130 steps"
void announce_steps(const Run& run, const ModelBundle& bundle) {
  run.control.out << "Ahead: ";
  if (!bundle.checkpoint && run.recipe.sft.steps > 0)
    run.control.out << "SFT of " << counted_steps(run.recipe.sft.steps) << ", ";
  run.control.out << "training of " << counted_steps(run.recipe.train.steps) << "\n";
}

/// A fresh policy, after SFT if the recipe says so.
Result<RunEnd> sft_before_training(Run& run, ModelBundle& bundle) {
  if (run.recipe.sft.steps == 0) return RunEnd::Complete;
  const fs::path root = run.folder.root / "warm_start";
  const auto lock = FolderLock::take(root);
  if (!lock) return lock.error();
  const auto folder = open_run_folder(root, Resume::Auto);
  if (!folder) return folder.error();
  RunOptions resume = run.recipe.run;
  if (resume.resume != "never") resume.resume = "auto";
  const auto checkpoint = checkpoint_to_resume(resume, folder->checkpoints());
  if (!checkpoint) return checkpoint.error();
  return sft_stage(run, *folder, bundle, *checkpoint);
}

/// The memory that the run is predicted to take; refused where that is more than there is.
Result<std::int64_t> predict_memory(const Recipe& recipe, const ModelConfig& config, MemoryStage stage) {
  const MemorySettings settings = memory_settings(recipe, config, stage);
  if (recipe.memory.check == "off") return predicted_peak(settings);
  const Status fits = check_memory(settings, memory_limit(recipe));
  if (!fits && recipe.memory.check == "refuse") return fits.error();
  if (!fits) log_warning(fits.error().message);
  return predicted_peak(settings);
}

/// What a run begins with.
struct Start {
  ModelBundle bundle;
  std::int64_t predicted_memory = 0;
};

/// Refuses what does not fit, in settings or in memory, before any weights are there.
Result<Start> start(Recipe& recipe, const std::optional<FoundCheckpoint>& checkpoint, MemoryStage stage) {
  // SFT lays its checkpoint over the recipe's own model (sft_stage).
  const bool from_checkpoint = checkpoint && stage != MemoryStage::Sft;
  auto bundle = ModelBundle::open(recipe, from_checkpoint ? std::optional(checkpoint->path) : std::nullopt);
  if (!bundle) return bundle.error();
  if (stage != MemoryStage::Sft) {
    const Status compatible = check_compatible(*recipe.environment, recipe.environment_name, *recipe.method.branch,
                                               recipe.rollout.options.group_size, *bundle->chat);
    if (!compatible) return compatible.error();
  }
  if (resume_of(recipe) == Resume::Auto) {
    const auto changes = check_resumed_settings(recipe, recorded_config(recipe, checkpoint));
    if (!changes) return changes.error();
  }
  const auto memory = predict_memory(recipe, bundle->config, stage);
  if (!memory) return memory.error();
  if (const Status loaded = bundle->load_policy(recipe); !loaded) return loaded.error();
  return Start{std::move(bundle).value(), *memory};
}

void track_evaluation(Run& run, std::string_view stage, std::int64_t step, const EvaluatedGroups& evaluated) {
  run.tracking.metrics(
      stage, step,
      evaluation_metrics(evaluated.evaluation, run.recipe.environment_name, run.recipe.evaluation.samples));
}

/// Starts the tracker before anything is written; what is refused leaves no folder.
Result<Tracking> start_tracking(Recipe& recipe, bool resumed) {
  return Tracking::start(recipe, RunFolder{recipe.run.run_folder}, resumed);
}

/// The run with its tracker told the end.
Result<RunEnd> tracked(Run& run, const std::function<Result<RunEnd>()>& stages) {
  if (const Status kept = run.tracking.keep_id(run.folder); !kept) return kept.error();
  auto end = stages();
  if (!end)
    run.tracking.end("failed", end.error().message);
  else
    run.tracking.end(*end == RunEnd::Complete ? "complete" : "interrupted");
  return end;
}

Result<RunEnd> train_from(Run& run, ModelBundle& bundle) {
  announce(run, bundle);
  announce_steps(run, bundle);
  if (!bundle.checkpoint) {
    const auto end = sft_before_training(run, bundle);
    if (!end || *end == RunEnd::Interrupted) return end;
  }
  bundle.add_companions(run.recipe);
  Trainer trainer(run.recipe, bundle);
  TrainerState state;
  if (bundle.checkpoint) {
    auto loaded = load_checkpoint(
        *bundle.checkpoint,
        {.bundle = &bundle, .optimizer = &trainer.optimizer(), .critic_optimizer = trainer.critic_optimizer()});
    if (!loaded) return loaded.error();
    state = std::move(loaded).value();
    trainer.set_coefficients(state.coefficients);
  }
  // A step whose evaluation was stopped is told about once more.
  run.tracking.stage(kTrainingStage, state.unwritten_metrics.empty() ? state.step : state.step - 1,
                     run.recipe.train.steps);
  std::optional<EvaluatedGroups> before;
  if (run.recipe.evaluation.before_training) {
    const auto evaluation = state.step > 0 ? kept_or_new_evaluation : evaluation_stage;
    auto evaluated = evaluation(run, "before", bundle, trainer.engine());
    if (!evaluated) return evaluated.error();
    if (!*evaluated) return stopped(run, "in the evaluation before training; what SFT learnt is kept");
    before = std::move(*evaluated);
    track_evaluation(run, kTrainingStage, 0, *before);
  }
  const auto end = reinforcement_stage(run, bundle, trainer, state);
  if (!end || *end == RunEnd::Interrupted) return end;
  const auto after = evaluation_stage(run, "after", bundle, trainer.engine());
  if (!after) return after.error();
  if (!*after) return stopped(run, "in the evaluation after training; a checkpoint is written");
  track_evaluation(run, kTrainingStage, run.recipe.train.steps, **after);
  if (const Status status = summary_stage(run, bundle, before ? *before : **after, **after); !status)
    return status.error();
  return RunEnd::Complete;
}

Result<RunEnd> sft_from(Run& run, ModelBundle& bundle, const std::optional<FoundCheckpoint>& checkpoint) {
  announce(run, bundle);
  const auto end = sft_stage(run, run.folder, bundle, checkpoint);
  if (!end || *end == RunEnd::Interrupted) return end;
  const Generation generation = make_generation(bundle, run.recipe.rollout, run.recipe.step_trajectories());
  const auto after = evaluation_stage(run, "after", bundle, *generation.engine);
  if (!after) return after.error();
  if (!*after) return stopped(run, "in the evaluation after SFT; a checkpoint is written");
  track_evaluation(run, kSftStage, run.recipe.sft.steps, **after);
  run.control.out << evaluation_table({{"after", (*after)->evaluation}}, run.recipe.evaluation.breakdown)
                  << "\nRun folder: " << run.folder.root.string() << "\n";
  return RunEnd::Complete;
}

}  // namespace

Result<RunEnd> run_training(Recipe& recipe, const RunControl& control) {
  const auto lock = lock_folder(recipe);
  if (!lock) return lock.error();
  const auto checkpoint = checkpoint_to_resume(recipe.run, RunFolder{recipe.run.run_folder}.checkpoints());
  if (!checkpoint) return checkpoint.error();
  auto begun = start(recipe, *checkpoint, MemoryStage::Training);
  if (!begun) return begun.error();
  auto tracking = start_tracking(recipe, checkpoint->has_value());
  if (!tracking) return tracking.error();
  auto folder = open_folder(recipe, *checkpoint);
  if (!folder) return folder.error();
  const Status settled = settle_checkpoints(folder->checkpoints(), *checkpoint, recipe.train);
  if (!settled) return settled.error();
  Run run(recipe, control, std::move(folder).value());
  run.predicted_memory = begun->predicted_memory;
  run.tracking = std::move(tracking).value();
  return tracked(run, [&] { return train_from(run, begun->bundle); });
}

Result<RunEnd> run_sft(Recipe& recipe, const RunControl& control) {
  if (recipe.sft.steps == 0) return Error{"sft.steps: is 0; expected how many steps SFT takes"};
  const auto lock = lock_folder(recipe);
  if (!lock) return lock.error();
  const auto checkpoint = checkpoint_to_resume(recipe.run, RunFolder{recipe.run.run_folder}.checkpoints());
  if (!checkpoint) return checkpoint.error();
  auto begun = start(recipe, *checkpoint, MemoryStage::Sft);
  if (!begun) return begun.error();
  auto tracking = start_tracking(recipe, checkpoint->has_value());
  if (!tracking) return tracking.error();
  auto folder = open_folder(recipe, *checkpoint);
  if (!folder) return folder.error();
  Run run(recipe, control, std::move(folder).value());
  run.tracking = std::move(tracking).value();
  return tracked(run, [&] { return sft_from(run, begun->bundle, *checkpoint); });
}

Result<RunEnd> run_rollout(Recipe& recipe, const RunControl& control) {
  const auto lock = lock_folder(recipe);
  if (!lock) return lock.error();
  auto begun = start(recipe, {}, MemoryStage::Rollout);
  if (!begun) return begun.error();
  log_warnings(recipe.method);
  ModelBundle& bundle = begun->bundle;
  auto folder = open_folder(recipe, {});
  if (!folder) return folder.error();
  bundle.add_companions(recipe);
  Trainer trainer(recipe, bundle);
  const auto step = trainer.roll_out_and_measure(0, {.go_on = [&control] { return !control.stop_requested(); }});
  if (!step) {
    control.out << "Stopped; nothing is written\n";
    return RunEnd::Interrupted;
  }
  const auto decode = [&](std::span<const TokenId> tokens) { return bundle.tokenizer->decode(tokens); };
  const fs::path path = folder->rollouts(0);
  if (const Status status = write_file_atomically(path, rollout_rows(step->groups, step->credit, decode)); !status)
    return status.error();
  if (const Status status = write_file_atomically(folder->root / "tokenizer.json", bundle.tokenizer->json()); !status)
    return status.error();
  control.out << trajectories(step->groups).size() << " trajectories in " << path.string() << "\n";
  const Status few = check_failures(count_failures(step->groups), recipe.train.max_infra_failures, step->failures);
  if (!few) return few.error();
  return RunEnd::Complete;
}

Status dry_run(Recipe& recipe, MemoryStage stage, std::ostream& out) {
  if (const Status status = ModelBundle::prepare_device(recipe.run); !status) return status;
  const auto bundle = ModelBundle::open(recipe);
  if (!bundle) return bundle.error();
  out << recipe.to_yaml() << "\n# Memory at the peak\n"
      << memory_table(memory_budget(memory_settings(recipe, bundle->config, stage)));
  if (const MachineMemory limit = memory_limit(recipe); limit.bytes > 0)
    out << "  of the " << (limit.bytes >> 20) << " MiB " << limit.source << "\n";
  const auto memory = predict_memory(recipe, bundle->config, stage);
  return memory ? Status(Done{}) : memory.error();
}

}  // namespace carnot
