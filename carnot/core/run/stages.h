// run/stages.h -- the stages of a run: SFT, evaluation, reinforcement learning, summary.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "carnot/core/rows/demonstration_files.h"
#include "carnot/core/run/console_lines.h"
#include "carnot/core/run/evaluation.h"
#include "carnot/core/run/progress.h"
#include "carnot/core/run/rollout_service.h"
#include "carnot/core/run/run.h"
#include "carnot/core/run/start.h"
#include "carnot/core/run/trainer_state.h"
#include "carnot/core/train/model_bundle.h"
#include "carnot/core/train/trainer.h"

namespace carnot {

/// What every stage of one run shares.
struct Run {
  Recipe& recipe;
  const RunControl& control;
  RunFolder folder;
  Progress progress;
  SplitDemonstrations demonstrations{};  ///< the rows of sft.source
  std::int64_t predicted_memory = 0;     ///< bytes at the peak
  std::int64_t trained_steps = 0;        ///< training steps that are complete, set when training is over
  DeadShares dead{};                     ///< of the training steps that this process made
  Tracking tracking{};
  std::unique_ptr<RolloutService> workers{};  ///< that roll out training steps; null: this process does

  /// Takes over demonstrations and tracker. REQUIRES: `start` outlives it.
  Run(Recipe& of, const RunControl& with, StartedRun& start)
      : recipe(of),
        control(with),
        folder(start.plan.folder),
        progress(with.out, {.terminal = with.terminal, .columns = with.columns}),
        demonstrations(std::move(start.demonstrations)),
        predicted_memory(start.predicted_memory),
        tracking(std::move(start.tracking)) {}
};

/// Trains `bundle.policy` on demonstrations, in the plan's folder and from its checkpoint on if there is one.
Result<RunEnd> sft_stage(Run& run, ModelBundle& bundle, const StartPlan& plan);

/// Where an evaluation shows how far it is, and who may stop it.
struct EvaluationView {
  Progress& progress;
  const RunControl& control;
};

/// Evaluates, with a bar of this title. Empty if the user stops it.
std::optional<EvaluatedGroups> evaluate_with_bar(const EvaluationView& view, std::string_view title,
                                                 const Recipe& recipe, const ModelBundle& bundle, Engine& engine);

/// Fails if more of its trajectories were lost to infrastructure failures than train.max_infra_failures allows.
Status check_evaluation(const std::string& name, const EvaluatedGroups& evaluated, const Recipe& recipe);

/// Evaluates and keeps the result in validation/NAME. Empty if the user stops it; then nothing is kept.
Result<std::optional<EvaluatedGroups>> evaluation_stage(Run& run, const std::string& name, ModelBundle& bundle,
                                                        Engine& engine);

/// What evaluation_stage() kept; the evaluation's statistics are made again from its trajectories.
Result<EvaluatedGroups> load_evaluation(const std::filesystem::path& run_folder, const std::string& name,
                                        const std::string& breakdown);

/// The same, but takes the result of an earlier process if there is one.
Result<std::optional<EvaluatedGroups>> kept_or_new_evaluation(Run& run, const std::string& name, ModelBundle& bundle,
                                                              Engine& engine);

/// All steps after `start`. A step that the user stops before its update has not happened; one that is stopped in the
/// evaluation after it is in the checkpoint, with its metrics, and the resumed run begins with the evaluation.
/// `before`: metrics of the evaluation before step 1, where `start` is there and an evaluation was made.
Result<RunEnd> reinforcement_stage(Run& run, ModelBundle& bundle, Trainer& trainer, const TrainerState& start,
                                   const StepMetrics& before);

/// Table, transcripts, summary.json; `before` where there was such an evaluation.
Status summary_stage(Run& run, const ModelBundle& bundle, const std::optional<EvaluatedGroups>& before,
                     const EvaluatedGroups& after);

}  // namespace carnot
