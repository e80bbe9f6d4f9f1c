#include "carnot/run/run.h"

#include <limits>

#include "carnot/base/file.h"
#include "carnot/base/log.h"
#include "carnot/config/document.h"
#include "carnot/data/rollout_file.h"
#include "carnot/run/checkpoint.h"
#include "carnot/run/find_run.h"
#include "carnot/run/folder_lock.h"
#include "carnot/train/infra_failures.h"
#include "carnot/run/memory_budget.h"
#include "carnot/run/resumed_settings.h"
#include "carnot/run/stages.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

Resume resume_of(const Recipe& recipe) { return recipe.run.resume == "never" ? Resume::Never : Resume::Auto; }

/// What can be refused before anything is loaded or written.
Status check_start(const Recipe& recipe) {
  if (const Status status = Workbench::prepare_device(recipe.run); !status) return status;
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

/// The configuration that the run to go on with was made with; a path to nothing where there is none.
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

void announce(const Run& run, const Workbench& bench) {
  run.control.out << run.recipe.environment_name << ", " << run.recipe.method.name << ": "
                  << bench.policy->config().num_parameters() << " parameters, vocabulary "
                  << bench.tokenizer->vocab_size() << ", seed " << run.recipe.run.seed << "\n";
  const LoraOptions& lora = bench.policy->lora();
  if (lora.rank > 0)
    run.control.out << "Adapters of rank " << lora.rank << " are trained: " << num_values(bench.policy->adapters())
                    << " numbers\n";
  if (lora.rank > 0 && run.recipe.model.path.empty())
    log_warning("lora.rank: the weights below the adapters are random and stay so; expected a model.path");
  log_warnings(run.recipe.method);
}

/// A fresh policy, warm-started if the recipe says so.
Result<RunEnd> warm_start(Run& run, Workbench& bench) {
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
  return supervised_stage(run, *folder, bench, *checkpoint);
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
  Workbench bench;
  std::int64_t predicted_memory = 0;
};

/// Refuses what does not fit, in settings or in memory, before any weights are there.
Result<Start> start(Recipe& recipe, const std::optional<FoundCheckpoint>& checkpoint, MemoryStage stage) {
  // The warm start lays its checkpoint over the recipe's own model (supervised_stage).
  const bool from_checkpoint = checkpoint && stage != MemoryStage::Supervised;
  auto bench = Workbench::open(recipe, from_checkpoint ? std::optional(checkpoint->path) : std::nullopt);
  if (!bench) return bench.error();
  if (resume_of(recipe) == Resume::Auto) {
    const auto changes = check_resumed_settings(recipe, recorded_config(recipe, checkpoint));
    if (!changes) return changes.error();
  }
  const auto memory = predict_memory(recipe, bench->config, stage);
  if (!memory) return memory.error();
  if (const Status loaded = bench->load_policy(recipe); !loaded) return loaded.error();
  return Start{std::move(bench).value(), *memory};
}

Result<RunEnd> train_from(Run& run, Workbench& bench) {
  announce(run, bench);
  if (!bench.checkpoint) {
    const auto end = warm_start(run, bench);
    if (!end || *end == RunEnd::Interrupted) return end;
  }
  bench.add_companions(run.recipe);
  Trainer trainer(run.recipe, bench);
  TrainerState state;
  if (bench.checkpoint) {
    auto loaded = load_checkpoint(
        *bench.checkpoint,
        {.bench = &bench, .optimizer = &trainer.optimizer(), .critic_optimizer = trainer.critic_optimizer()});
    if (!loaded) return loaded.error();
    state = std::move(loaded).value();
    trainer.set_coefficients(state.coefficients);
  }
  std::optional<EvaluatedGroups> before;
  if (run.recipe.evaluation.before_training) {
    const auto evaluation = state.step > 0 ? kept_or_new_evaluation : evaluation_stage;
    auto evaluated = evaluation(run, "before", bench, trainer.engine());
    if (!evaluated) return evaluated.error();
    if (!*evaluated) return stopped(run, "in the evaluation before training; what the warm start learnt is kept");
    before = std::move(*evaluated);
  }
  const auto end = reinforcement_stage(run, bench, trainer, state);
  if (!end || *end == RunEnd::Interrupted) return end;
  const auto after = evaluation_stage(run, "after", bench, trainer.engine());
  if (!after) return after.error();
  if (!*after) return stopped(run, "in the evaluation after training; a checkpoint is written");
  if (const Status status = summary_stage(run, bench, before ? *before : **after, **after); !status)
    return status.error();
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
  auto folder = open_folder(recipe, *checkpoint);
  if (!folder) return folder.error();
  const Status settled = settle_checkpoints(folder->checkpoints(), *checkpoint, recipe.train);
  if (!settled) return settled.error();
  Run run(recipe, control, std::move(folder).value());
  run.predicted_memory = begun->predicted_memory;
  return train_from(run, begun->bench);
}

Result<RunEnd> run_supervised(Recipe& recipe, const RunControl& control) {
  if (recipe.sft.steps == 0) return Error{"sft.steps: is 0; expected how many steps the warm start takes"};
  const auto lock = lock_folder(recipe);
  if (!lock) return lock.error();
  const auto checkpoint = checkpoint_to_resume(recipe.run, RunFolder{recipe.run.run_folder}.checkpoints());
  if (!checkpoint) return checkpoint.error();
  auto begun = start(recipe, *checkpoint, MemoryStage::Supervised);
  if (!begun) return begun.error();
  Workbench& bench = begun->bench;
  auto folder = open_folder(recipe, *checkpoint);
  if (!folder) return folder.error();
  Run run(recipe, control, std::move(folder).value());
  announce(run, bench);
  const auto end = supervised_stage(run, run.folder, bench, *checkpoint);
  if (!end || *end == RunEnd::Interrupted) return end;
  const Generation generation =
      make_generation(bench, recipe.rollout, recipe.step_trajectories());
  const auto after = evaluation_stage(run, "after", bench, *generation.engine);
  if (!after) return after.error();
  if (!*after) return stopped(run, "in the evaluation after the warm start; a checkpoint is written");
  control.out << evaluation_table({{"after", (*after)->evaluation}}, recipe.evaluation.breakdown)
              << "\nRun folder: " << run.folder.root.string() << "\n";
  return RunEnd::Complete;
}

Result<RunEnd> run_rollout(Recipe& recipe, const RunControl& control) {
  const auto lock = lock_folder(recipe);
  if (!lock) return lock.error();
  auto begun = start(recipe, {}, MemoryStage::Rollout);
  if (!begun) return begun.error();
  log_warnings(recipe.method);
  Workbench& bench = begun->bench;
  auto folder = open_folder(recipe, {});
  if (!folder) return folder.error();
  bench.add_companions(recipe);
  Trainer trainer(recipe, bench);
  const auto step = trainer.explore_and_score(0, {.go_on = [&control] { return !control.stop_requested(); }});
  if (!step) {
    control.out << "Stopped; nothing is written\n";
    return RunEnd::Interrupted;
  }
  const auto decode = [&](std::span<const TokenId> tokens) { return bench.tokenizer->decode(tokens); };
  const fs::path path = folder->rollouts(0);
  if (const Status status = write_file_atomically(path, rollout_rows(step->groups, step->credit, decode)); !status)
    return status.error();
  if (const Status status = write_file_atomically(folder->root / "tokenizer.json", bench.tokenizer->json()); !status)
    return status.error();
  control.out << trajectories(step->groups).size() << " trajectories in " << path.string() << "\n";
  const Status few =
      check_failures(count_failures(step->groups), recipe.train.max_infra_failures, step->failures);
  if (!few) return few.error();
  return RunEnd::Complete;
}

Result<RunEnd> run_evaluation(const EvaluationRequest& request, const RunControl& control) {
  const auto checkpoint = find_checkpoint(request.path);
  if (!checkpoint) return checkpoint.error();
  const auto config = find_config(*checkpoint);
  if (!config) return config.error();
  auto loaded = Recipe::load(*config, request.overrides);
  if (!loaded) return loaded.error();
  Recipe recipe = std::move(loaded).value();
  if (const Status status = Workbench::prepare_device(recipe.run); !status) return status.error();
  auto bench = Workbench::make(recipe, *checkpoint);
  if (!bench) return bench.error();
  const Generation generation =
      make_generation(*bench, recipe.rollout, recipe.step_trajectories());
  // Lines between would be no JSON; a bar leaves nothing behind.
  const double quiet_for = request.json ? std::numeric_limits<double>::infinity() : Progress::Options().quiet_for;
  Progress progress(control.out, {.terminal = control.terminal, .columns = control.columns, .quiet_for = quiet_for});
  const auto result = evaluate_with_bar({progress, control}, "evaluation", recipe, *bench, *generation.engine);
  if (!result) return RunEnd::Interrupted;
  if (request.json) {
    control.out << evaluation_json(result->evaluation) << "\n";
  } else {
    control.out << checkpoint->string() << "\n"
                << evaluation_table({{"success and more", result->evaluation}}, recipe.evaluation.breakdown);
  }
  if (const Status status = check_evaluation(checkpoint->filename(), *result, recipe); !status) return status.error();
  return RunEnd::Complete;
}

Status dry_run(Recipe& recipe, MemoryStage stage, std::ostream& out) {
  if (const Status status = Workbench::prepare_device(recipe.run); !status) return status;
  const auto bench = Workbench::open(recipe);
  if (!bench) return bench.error();
  out << recipe.to_yaml() << "\n# Memory at the peak\n"
      << memory_table(memory_budget(memory_settings(recipe, bench->config, stage)));
  if (const MachineMemory limit = memory_limit(recipe); limit.bytes > 0)
    out << "  of the " << (limit.bytes >> 20) << " MiB " << limit.source << "\n";
  const auto memory = predict_memory(recipe, bench->config, stage);
  return memory ? Status(Done{}) : memory.error();
}

}  // namespace carnot
