#include "carnot/core/base/file.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/data/rollout_file.h"
#include "carnot/core/run/console_lines.h"
#include "carnot/core/run/run_alarms.h"
#include "carnot/core/run/stage_files.h"
#include "carnot/core/run/stages.h"
#include "carnot/core/run/start.h"
#include "carnot/core/run/stopping.h"

namespace carnot {
namespace {

constexpr const char* kTraining = "training";

/// The steps of one training stage.
class TrainingLoop {
 public:
  TrainingLoop(Run& run, ModelBundle& bundle, Trainer& trainer, StageFiles& files, const TrainerState& start)
      : run_(run),
        bundle_(bundle),
        trainer_(trainer),
        files_(files),
        start_(start),
        sampled_tokens_(start.sampled_tokens),
        alarms_(alarm_setting(run.recipe), start.alarms) {}

  /// `before`: metrics of the evaluation before the first step; empty if there was none.
  Result<RunEnd> run(const StepMetrics& before) {
    const Optimizer& optimizer = trainer_.optimizer();
    const std::int64_t updates_before = optimizer.num_updates(), skipped_before = optimizer.num_skipped();
    run_.progress.begin(run_.recipe.method.name, run_.recipe.train.steps, start_.step);
    if (!before.empty()) {
      const auto end = begin(before);
      if (!end || *end != RunEnd::Complete) return end;
    }
    if (!start_.unwritten_metrics.empty()) {
      const auto end = finish_resumed_step();
      if (!end || *end != RunEnd::Complete) return end;
    }
    std::int64_t step = start_.step;
    for (; !is_over(step); ++step) {
      const auto end = take_step(step);
      if (!end || *end != RunEnd::Complete) return end;
    }
    run_.progress.end();
    run_.trained_steps = step;
    if (step == start_.step) return RunEnd::Complete;
    CARNOT_RETURN_IF_ERROR(save(step));
    if (optimizer.num_updates() > updates_before) return RunEnd::Complete;
    const bool tried = optimizer.num_skipped() > skipped_before;
    return Error{std::string(kTraining) + ": " + (tried ? kAllSkipped : why_none())};
  }

 private:
  /// Why no step had anything to learn from.
  std::string why_none() const {
    const GroupFilter& filter = run_.recipe.method.filter;
    std::string why = "no update was made, since no group was left to learn from";
    if (filter.name != "none")
      why += ": " + filter.name + " dropped all of them, in up to " + std::to_string(filter.max_refills + 1) +
             " batches of rollouts a step";
    return why + ". The last checkpoint is written";
  }

  bool is_over(std::int64_t steps) const {
    const TrainOptions& options = run_.recipe.train;
    return steps >= options.steps || (options.max_sampled_tokens > 0 && sampled_tokens_ >= options.max_sampled_tokens);
  }

  bool is_evaluated_after(std::int64_t step) const {
    return is_due(step, run_.recipe.evaluation.every) && !is_over(step);
  }

  Status save(std::int64_t step, const StepMetrics& unwritten = {}) {
    return files_.save(step, {.bundle = &bundle_,
                              .optimizer = &trainer_.optimizer(),
                              .critic_optimizer = trainer_.critic_optimizer(),
                              .sampled_tokens = sampled_tokens_,
                              .coefficients = trainer_.coefficients(),
                              .alarms = alarms_.memory(),
                              .unwritten_metrics = unwritten});
  }

  /// The alarms that are known before the first step.
  Result<RunEnd> begin(const StepMetrics& before) {
    const auto raised = alarms_.watch(0, before);
    print_alarms(run_.progress, raised, 0, {}, decode());
    return end_by_alarms(0, raised);
  }

  /// Of the run that was stopped in the evaluation after its last step, or could not write the step's metrics.
  Result<RunEnd> finish_resumed_step() {
    StepMetrics metrics = start_.unwritten_metrics;
    if (is_evaluated_after(start_.step)) {
      const auto end = evaluate_step(start_.step, metrics);
      if (!end) return end;
      if (*end == RunEnd::Interrupted) return stopped(run_, after_step(kTraining, start_.step));
    }
    CARNOT_ASSIGN_OR_RETURN(const auto raised, finish_step(start_.step, metrics, {}));
    return end_by_alarms(start_.step, raised);
  }

  Result<RunEnd> take_step(std::int64_t step) {
    auto result = stop_is_requested(run_) ? std::nullopt : trainer_.step(step, stoppable(run_.control));
    if (!result) return end_before(step);
    if (run_.workers) result->metrics.merge(run_.workers->take_metrics());
    const std::int64_t done = step + 1;
    CARNOT_RETURN_IF_ERROR(keep_rollouts(done, *result));
    if (!result->trained) {
      CARNOT_RETURN_IF_ERROR(save(step));
      return ended_by(
          run_, std::string(kTraining) + " step " + std::to_string(done) + ": " + result->trained.error().message);
    }
    sampled_tokens_ += static_cast<std::int64_t>(result->metrics.at("rollout/sampled_tokens"));
    if (is_evaluated_after(done)) {
      const auto end = evaluate_or_save(done, result->metrics);
      if (!end || *end == RunEnd::Interrupted) return end;
    }
    const auto raised = finish_step(done, result->metrics, result->groups);
    if (!raised) return end_unwritten(done, *result, raised.error());
    if (const auto end = end_by_alarms(done, *raised); !end || *end != RunEnd::Complete) return end;
    if (!is_over(done) && files_.save_is_due(done)) CARNOT_RETURN_IF_ERROR(save(done));
    return RunEnd::Complete;
  }

  /// The step's metrics cannot be written. Where a checkpoint can, it keeps them.
  Result<RunEnd> end_unwritten(std::int64_t done, const TrainingStep& result, const Error& why) {
    if (!save(done, result.metrics)) return why;
    return ended_by(run_, why.message);
  }

  /// The run ends with `step` steps: it was stopped, or rollouts for the next step are not available.
  Result<RunEnd> end_before(std::int64_t step) {
    CARNOT_RETURN_IF_ERROR(save(step));
    if (const Status failure = why_not(run_.workers.get(), *run_.control.group); !failure)
      return ended_by(run_, failure.error().message);
    return stopped(run_, after_step(kTraining, step));
  }

  Status keep_rollouts(std::int64_t done, const TrainingStep& result) {
    CARNOT_RETURN_IF_ERROR(on_first_rank(*run_.control.group, "writing rollouts", [&]() -> Status {
      CARNOT_RETURN_IF_ERROR(restore_folder(run_.recipe));
      if (!run_.recipe.train.keep_rollouts) return Done{};
      return write_file_atomically(run_.folder.rollouts(done), rollout_rows(result.groups, result.credit, decode()));
    }));
    run_.tracking.transcripts(done, result.groups, decode());
    return Done{};
  }

  /// Where the evaluation does not end, the step is kept with the metrics that it has.
  Result<RunEnd> evaluate_or_save(std::int64_t done, StepMetrics& metrics) {
    const StepMetrics unwritten = metrics;
    const auto end = evaluate_step(done, metrics);
    if (end && *end == RunEnd::Complete) return end;
    CARNOT_RETURN_IF_ERROR(save(done, unwritten));
    if (!end) return ended_by(run_, end.error().message);
    return stopped(run_, after_step(kTraining, done));
  }

  /// Adds the evaluation after step `step` to its metrics.
  Result<RunEnd> evaluate_step(std::int64_t step, StepMetrics& metrics) {
    CARNOT_ASSIGN_OR_RETURN(const auto evaluated,
                            evaluation_stage(run_, "step_" + std::to_string(step), bundle_, trainer_.engine()));
    if (!evaluated) return RunEnd::Interrupted;
    metrics.merge(
        evaluation_metrics(evaluated->evaluation, run_.recipe.environment_name, run_.recipe.evaluation.samples));
    return RunEnd::Complete;
  }

  /// Reports the step. Returns the alarms that started with it; where its metrics cannot be written, it did not happen
  /// for them.
  Result<std::vector<RaisedAlarm>> finish_step(std::int64_t step, StepMetrics metrics, std::span<const Group> groups) {
    AlarmWatch alarms = alarms_;
    auto raised = alarms.watch(step, metrics);
    metrics.merge(alarms.metrics());
    CARNOT_RETURN_IF_ERROR(files_.write_metrics(step, metrics));
    alarms_ = std::move(alarms);
    run_.tracking.metrics(kTrainingStage, step, metrics);
    run_.dead.add(metrics);
    run_.progress.update(step);  // first, so that the bar below the line knows the step
    run_.progress.print(step_line({.step = step, .steps = run_.recipe.train.steps, .width = run_.progress.width()},
                                  metrics, run_.recipe.environment_name));
    print_alarms(run_.progress, raised, step, groups, decode());
    return raised;
  }

  /// Complete: training continues. Times differ between ranks, and so may alarms of them: the first rank decides.
  Result<RunEnd> end_by_alarms(std::int64_t step, const std::vector<RaisedAlarm>& raised) {
    if (run_.recipe.alarm.stop.empty()) return RunEnd::Complete;
    Collectives& group = *run_.control.group;
    const std::vector<std::string> names = alarms_.stopping(raised);
    if (!is_true_anywhere(group, group.rank() == 0 && !names.empty(), "asking whether an alarm ends the run"))
      return RunEnd::Complete;
    CARNOT_RETURN_IF_ERROR(save(step));
    return ended_by_alarm(run_, join(names), after_step(kTraining, step));
  }

  Decode decode() const {
    return [this](std::span<const TokenId> tokens) { return bundle_.tokenizer->decode(tokens); };
  }

  Run& run_;
  ModelBundle& bundle_;
  Trainer& trainer_;
  StageFiles& files_;
  const TrainerState& start_;
  std::int64_t sampled_tokens_;
  AlarmWatch alarms_;
};

}  // namespace

Result<RunEnd> reinforcement_stage(Run& run, ModelBundle& bundle, Trainer& trainer, const TrainerState& start,
                                   const StepMetrics& before) {
  const bool is_evaluated = start.unwritten_metrics.empty();
  StageFiles::Options options{.folder = run.folder,
                              .resume_step = is_evaluated ? start.step : start.step - 1,
                              .save_every = run.recipe.train.save_every,
                              .restore = [&run] { return restore_folder(run.recipe); }};
  if (is_evaluated && bundle.checkpoint && lies_in(*bundle.checkpoint, run.folder.checkpoints()))
    options.saved = start.step;
  CARNOT_ASSIGN_OR_RETURN(auto files, StageFiles::open(run, options));
  return TrainingLoop(run, bundle, trainer, files, start).run(before);
}

}  // namespace carnot
