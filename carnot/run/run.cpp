#include "carnot/run/run.h"

#include <algorithm>
#include <functional>

#include "carnot/base/byte_stream.h"
#include "carnot/base/file.h"
#include "carnot/base/log.h"
#include "carnot/base/saturating.h"
#include "carnot/base/thread_pool.h"
#include "carnot/config/document.h"
#include "carnot/data/rollout_write.h"
#include "carnot/nn/linear.h"
#include "carnot/rollout/compatibility.h"
#include "carnot/run/checkpoint.h"
#include "carnot/run/find_run.h"
#include "carnot/run/folder_lock.h"
#include "carnot/run/group_start.h"
#include "carnot/run/memory_advice.h"
#include "carnot/run/memory_budget.h"
#include "carnot/run/remote_rollouts.h"
#include "carnot/run/resumed_settings.h"
#include "carnot/run/stages.h"
#include "carnot/train/infra_failures.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

Resume resume_of(const Recipe& recipe) { return recipe.run.resume == "never" ? Resume::Never : Resume::Auto; }

/// What can be refused before anything is loaded or written.
Status check_start(const Recipe& recipe) {
  if (const Status status = check_plane(recipe); !status) return status;
  if (resume_of(recipe) == Resume::Auto || !RunFolder{recipe.run.run_folder}.holds_run()) return Done{};
  return open_run_folder(recipe.run.run_folder, Resume::Never).error();
}

/// What a run holds from its beginning to its end.
struct Hold {
  std::optional<FolderLock> folder;  ///< rank 0's, for all
  MachineShare share;
};

/// Refuses what can be refused first, then takes the folder: what is found there from here on stays so.
Result<Hold> take_hold(const Recipe& recipe, Collectives& group) {
  const MachineShare share = find_machine_share(group);
  RunOptions options = recipe.run;
  if (options.threads == 0 && group.size() > 1) options.threads = std::min(share.threads, kMaxThreads);
  const Status ready = agree(group, ModelBundle::prepare_device(options), "devices");
  if (!ready) return ready.error();
  auto folder = made_on_first_rank(group, "taking the run folder", [&]() -> Result<FolderLock> {
    if (const Status status = check_start(recipe); !status) return status.error();
    return FolderLock::take(recipe.run.run_folder);
  });
  if (!folder) return folder.error();
  return Hold{std::move(folder).value(), share};
}

/// What rank 0 finds, on all ranks.
Result<std::optional<FoundCheckpoint>> common_checkpoint(const RunOptions& run, const fs::path& checkpoints,
                                                         Collectives& group) {
  std::optional<FoundCheckpoint> found;
  const Status searched = on_first_rank(group, "looking for a checkpoint", [&]() -> Status {
    auto own = checkpoint_to_resume(run, checkpoints);
    if (!own) return own.error();
    found = std::move(own).value();
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

/// Filled once everything else is known to be right: a refused recipe leaves no folder.
Result<RunFolder> open_folder(Recipe& recipe, const std::optional<FoundCheckpoint>& checkpoint, Collectives& group) {
  const Status opened = on_first_rank(group, "opening the run folder", [&]() -> Status {
    const auto folder = open_run_folder(recipe.run.run_folder, resume_of(recipe));
    if (!folder) return folder.error();
    return write_config(*folder, recipe, checkpoint ? checkpoint->step : 0);
  });
  if (!opened) return opened.error();
  return RunFolder{recipe.run.run_folder};
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
  run.control.out << "training of " << counted_steps(run.recipe.train.steps);
  if (run.recipe.train.max_sampled_tokens > 0)
    run.control.out << " or " << run.recipe.train.max_sampled_tokens << " sampled tokens";
  run.control.out << "\n";
}

/// A fresh policy, after SFT if the recipe says so.
Result<RunEnd> sft_before_training(Run& run, ModelBundle& bundle) {
  if (run.recipe.sft.steps == 0) return RunEnd::Complete;
  Collectives& group = *run.control.group;
  const RunFolder folder{run.folder.root / "warm_start"};
  const auto lock =
      made_on_first_rank(group, "taking the folder of SFT", [&] { return FolderLock::take(folder.root); });
  if (!lock) return lock.error();
  const auto opened = made_on_first_rank(group, "opening the folder of SFT",
                                         [&] { return open_run_folder(folder.root, Resume::Auto); });
  if (!opened) return opened.error();
  RunOptions resume = run.recipe.run;
  if (resume.resume != "never") resume.resume = "auto";
  const auto checkpoint = common_checkpoint(resume, folder.checkpoints(), group);
  if (!checkpoint) return checkpoint.error();
  return sft_stage(run, folder, bundle, *checkpoint);
}

/// So many ranks make the run, some of them on this machine.
struct Ranks {
  int all = 1;
  int here = 1;
};

/// What each of the ranks on this machine may take.
MachineMemory limit_of_rank(const Recipe& recipe, const Ranks& ranks) {
  MachineMemory limit = memory_limit(recipe);
  if (ranks.here == 1 || recipe.memory.limit_megabytes > 0) return limit;
  limit.bytes /= ranks.here;
  limit.source = "that each of " + std::to_string(ranks.here) + " ranks has " + limit.source;
  return limit;
}

/// The memory that each rank of the run is predicted to take; refused where that is more than there is.
Result<std::int64_t> predict_memory(const Recipe& recipe, const ModelConfig& config, MemoryStage stage,
                                    const Ranks& ranks) {
  const MemorySettings settings = memory_settings(recipe, config, stage, ranks.all);
  if (recipe.memory.check == "off") return predicted_peak(settings);
  const Status fits = check_memory(settings, limit_of_rank(recipe, ranks));
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
Result<Start> start_alone(Recipe& recipe, const std::optional<FoundCheckpoint>& checkpoint, MemoryStage stage,
                          const Ranks& ranks) {
  const fs::path recorded = resume_of(recipe) == Resume::Auto ? recorded_config(recipe, checkpoint) : fs::path();
  if (const Status settled = settle_shards(recipe, recorded, ranks.all); !settled) return settled.error();
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
    const auto changes = check_resumed_settings(recipe, recorded);
    if (!changes) return changes.error();
  }
  const auto memory = predict_memory(recipe, bundle->config, stage, ranks);
  if (!memory) return memory.error();
  if (const Status loaded = bundle->load_policy(recipe); !loaded) return loaded.error();
  return Start{std::move(bundle).value(), *memory};
}

Result<Start> start(Recipe& recipe, const std::optional<FoundCheckpoint>& checkpoint, MemoryStage stage,
                    Collectives& group, const MachineShare& share) {
  auto begun =
      agreed(group, start_alone(recipe, checkpoint, stage, {.all = group.size(), .here = share.ranks}), "the start");
  if (!begun) return begun;
  if (const Status alike = check_alike(group, recipe, begun->bundle); !alike) return alike.error();
  return begun;
}

void track_evaluation(Run& run, std::string_view stage, std::int64_t step, const EvaluatedGroups& evaluated) {
  run.tracking.metrics(
      stage, step,
      evaluation_metrics(evaluated.evaluation, run.recipe.environment_name, run.recipe.evaluation.samples));
}

/// Starts rank 0's tracker before anything is written; what is refused leaves no folder.
Result<Tracking> start_tracking(Recipe& recipe, bool resumed, Collectives& group) {
  auto started = made_on_first_rank(group, "starting the tracker",
                                    [&] { return Tracking::start(recipe, RunFolder{recipe.run.run_folder}, resumed); });
  if (!started) return started.error();
  return *started ? std::move(**started) : Tracking();
}

/// The run with its tracker told the end.
Result<RunEnd> tracked(Run& run, const std::function<Result<RunEnd>()>& stages) {
  const Status kept =
      on_first_rank(*run.control.group, "keeping the tracker's id", [&] { return run.tracking.keep_id(run.folder); });
  if (!kept) return kept.error();
  auto end = stages();
  if (!end)
    run.tracking.end("failed", end.error().message);
  else
    run.tracking.end(*end == RunEnd::Complete ? "complete" : "interrupted");
  return end;
}

/// Lets workers roll out the trainer's first `steps` steps, where the recipe says so; rank 0 meets them, for all. Null
/// on the others, where the run was stopped meanwhile, or where nobody is to be met.
Result<std::unique_ptr<RemoteRollouts>> meet_workers(Recipe& recipe, ModelBundle& bundle, Trainer& trainer,
                                                     const fs::path& folder, std::int64_t steps,
                                                     const RunControl& control) {
  if (recipe.rollout.plane.address.empty()) return std::unique_ptr<RemoteRollouts>();
  std::unique_ptr<RemoteRollouts> workers;
  const std::string problem = await_first_rank(
      *control.group,
      [&](const GoOn& go_on) {
        auto opened = RemoteRollouts::open(recipe, bundle, folder, steps, go_on);
        if (opened) workers = std::move(opened).value();
        return opened ? std::string() : opened.error().message;
      },
      [&control] { return !control.stop_requested(); }, "meeting the NATS server");
  if (!problem.empty()) return Error{problem};
  if (workers) control.out << "Workers roll out: carnot worker " << recipe.rollout.plane.address << std::endl;
  trainer.roll_out_elsewhere([rollouts = workers.get()](const StepTasks& tasks, const RolloutEvents& events) {
    return rollouts ? rollouts->roll_out(tasks, events) : Rollout{.stopped = true};
  });
  return workers;
}

Result<RunEnd> train_from(Run& run, ModelBundle& bundle) {
  announce(run, bundle);
  announce_steps(run, bundle);
  if (!bundle.checkpoint) {
    const auto end = sft_before_training(run, bundle);
    if (!end || *end == RunEnd::Interrupted) return end;
  }
  bundle.add_companions(run.recipe);
  Trainer trainer(run.recipe, bundle, *run.control.group);
  TrainerState state;
  if (bundle.checkpoint) {
    auto loaded = agreed(
        *run.control.group,
        load_checkpoint(
            *bundle.checkpoint,
            {.bundle = &bundle, .optimizer = &trainer.optimizer(), .critic_optimizer = trainer.critic_optimizer()},
            run.recipe.run),
        "loading the checkpoint");
    if (!loaded) return loaded.error();
    state = std::move(loaded).value();
    trainer.set_coefficients(state.coefficients);
  }
  auto workers = meet_workers(run.recipe, bundle, trainer, run.folder.root, run.recipe.train.steps, run.control);
  if (!workers) return workers.error();
  run.workers = std::move(workers).value();
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
  track_evaluation(run, kTrainingStage, run.trained_steps, **after);
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
  Collectives& group = *control.group;
  const auto hold = take_hold(recipe, group);
  if (!hold) return hold.error();
  const auto checkpoint = common_checkpoint(recipe.run, RunFolder{recipe.run.run_folder}.checkpoints(), group);
  if (!checkpoint) return checkpoint.error();
  auto begun = start(recipe, *checkpoint, MemoryStage::Training, group, hold->share);
  if (!begun) return begun.error();
  auto tracking = start_tracking(recipe, checkpoint->has_value(), group);
  if (!tracking) return tracking.error();
  auto folder = open_folder(recipe, *checkpoint, group);
  if (!folder) return folder.error();
  const Status settled = on_first_rank(group, "clearing away checkpoints", [&] {
    return settle_checkpoints(folder->checkpoints(), *checkpoint, recipe.train);
  });
  if (!settled) return settled.error();
  Run run(recipe, control, std::move(folder).value());
  run.predicted_memory = begun->predicted_memory;
  run.tracking = std::move(tracking).value();
  return tracked(run, [&] { return train_from(run, begun->bundle); });
}

Result<RunEnd> run_sft(Recipe& recipe, const RunControl& control) {
  if (recipe.sft.steps == 0) return Error{"sft.steps: is 0; expected how many steps SFT takes"};
  Collectives& group = *control.group;
  const auto hold = take_hold(recipe, group);
  if (!hold) return hold.error();
  const auto checkpoint = common_checkpoint(recipe.run, RunFolder{recipe.run.run_folder}.checkpoints(), group);
  if (!checkpoint) return checkpoint.error();
  auto begun = start(recipe, *checkpoint, MemoryStage::Sft, group, hold->share);
  if (!begun) return begun.error();
  auto tracking = start_tracking(recipe, checkpoint->has_value(), group);
  if (!tracking) return tracking.error();
  auto folder = open_folder(recipe, *checkpoint, group);
  if (!folder) return folder.error();
  Run run(recipe, control, std::move(folder).value());
  run.tracking = std::move(tracking).value();
  return tracked(run, [&] { return sft_from(run, begun->bundle, *checkpoint); });
}

Result<RunEnd> run_rollout(Recipe& recipe, const RunControl& control) {
  Collectives& group = *control.group;
  const auto hold = take_hold(recipe, group);
  if (!hold) return hold.error();
  auto begun = start(recipe, {}, MemoryStage::Rollout, group, hold->share);
  if (!begun) return begun.error();
  log_warnings(recipe.method);
  ModelBundle& bundle = begun->bundle;
  auto folder = open_folder(recipe, {}, group);
  if (!folder) return folder.error();
  bundle.add_companions(recipe);
  Trainer trainer(recipe, bundle, group);
  const auto workers = meet_workers(recipe, bundle, trainer, folder->root, 1, control);
  if (!workers) return workers.error();
  const auto step = control.stop_requested()
                        ? std::nullopt
                        : trainer.roll_out_and_measure(0, {.go_on = [&control] { return !control.stop_requested(); }});
  if (!step) {
    if (const Status failure = why_not(workers->get(), group); !failure) return failure.error();
    control.out << "Stopped; nothing is written\n";
    return RunEnd::Interrupted;
  }
  const auto decode = [&](std::span<const TokenId> tokens) { return bundle.tokenizer->decode(tokens); };
  const fs::path path = folder->rollouts(0);
  const Status written = on_first_rank(group, "writing the rollouts", [&]() -> Status {
    const Status rows = write_file_atomically(path, rollout_rows(step->groups, step->credit, decode));
    return rows ? write_file_atomically(folder->root / "tokenizer.json", bundle.tokenizer->json()) : rows;
  });
  if (!written) return written.error();
  control.out << trajectories(step->groups).size() << " trajectories in " << path.string() << "\n";
  const Status few = check_failures(count_failures(step->groups), recipe.train.max_infra_failures, step->failures);
  if (!few) return few.error();
  return RunEnd::Complete;
}

Status dry_run(Recipe& recipe, MemoryStage stage, int ranks, std::ostream& out) {
  if (const Status status = ModelBundle::prepare_device(recipe.run); !status) return status;
  if (const Status status = check_ranks(recipe.train, ranks); !status) return status;
  const auto bundle = ModelBundle::open(recipe);
  if (!bundle) return bundle.error();
  out << recipe.to_yaml() << "\n# Memory at the peak" << (ranks > 1 ? ", of each rank" : "") << "\n"
      << memory_table(memory_budget(memory_settings(recipe, bundle->config, stage, ranks)));
  if (const MachineMemory limit = memory_limit(recipe); limit.bytes > 0)
    out << "  of the " << (limit.bytes >> 20) << " MiB " << limit.source << "\n";
  const auto memory = predict_memory(recipe, bundle->config, stage, {.all = ranks});
  if (memory && ranks > 1)
    out << "  " << ((Saturating(*memory) * ranks).value() >> 20) << " MiB for " << ranks << " ranks on one machine\n";
  return memory ? Status(Done{}) : memory.error();
}

}  // namespace carnot
