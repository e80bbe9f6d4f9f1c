// run/run.h -- the commands `carnot train`, `sft`, `rollout` and `eval`: stages, run folder, resume, reports.
//
// A run writes into one folder: config.yaml, metrics.jsonl, tensorboard/, rollouts/, validation/, checkpoints/,
// summary.json; SFT keeps a folder of the same layout in warm_start/. Stages end by step count.
#pragma once

#include <functional>
#include <iosfwd>

#include "carnot/base/result.h"
#include "carnot/run/memory_budget.h"
#include "carnot/train/recipe.h"

namespace carnot {

/// How a run talks to the program around it.
struct RunControl {
  std::ostream& out;                                            ///< what the user reads
  bool terminal = false;                                        ///< out is a terminal: progress bars are drawn
  std::function<int()> columns = [] { return 80; };             ///< of that terminal, as it is now
  std::function<bool()> stop_requested = [] { return false; };  ///< asked wherever a run can stop without a loss
};

/// How a command ended well.
enum class RunEnd { Complete, Interrupted };

/// SFT, evaluation, reinforcement learning, evaluation, summary. Resumes where the recipe says so, with the
/// settings that the run was made with (run/resumed_settings.h). Holds the folder's lock, as the next two do.
Result<RunEnd> run_training(Recipe& recipe, const RunControl& control);

/// SFT alone, into the run folder itself, and an evaluation.
Result<RunEnd> run_sft(Recipe& recipe, const RunControl& control);

/// Rolls out one step's tasks with the recipe's model and writes rollouts/step_0.jsonl.
Result<RunEnd> run_rollout(Recipe& recipe, const RunControl& control);

struct EvaluationRequest {
  std::filesystem::path path{};          ///< a run folder (its latest checkpoint) or a checkpoint folder of one
  std::vector<std::string> overrides{};  ///< `key=value` over the run's config.yaml
  bool json = false;
};

/// Evaluates a checkpoint with the configuration that its run folder holds.
Result<RunEnd> run_evaluation(const EvaluationRequest& request, const RunControl& control);

/// Writes the resolved configuration and the memory that the run will hold, without running it. Fails where the run
/// itself would be refused.
Status dry_run(Recipe& recipe, MemoryStage stage, std::ostream& out);

}  // namespace carnot
