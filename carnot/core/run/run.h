// run/run.h -- the commands `carnot train`, `sft`, `rollout` and `eval`: stages, run folder, resume, reports.
//
// A run writes into one folder: config.yaml, metrics.jsonl, tensorboard/, rollouts/, validation/, checkpoints/,
// summary.json; SFT keeps a folder of the same layout in warm_start/. Stages end by step count.
#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/collectives/collectives.h"
#include "carnot/core/run/evaluation.h"
#include "carnot/core/run/memory_budget.h"
#include "carnot/core/run/progress.h"
#include "carnot/core/train/recipe.h"

namespace carnot {

/// How a run talks to the program around it.
struct RunControl {
  std::ostream& out;                                 ///< what the user reads
  bool terminal = false;                             ///< out is a terminal: progress bars are drawn
  std::function<int()> columns = [] { return 80; };  ///< of that terminal, as it is now
  /// Asked wherever a run can stop without a loss; first when it begins to write.
  std::function<bool()> stop_requested = [] { return false; };
  std::string command{};  ///< "build/carnot train", which continues the run in the folder it gets; empty: another does
  /// The ranks that make the run together. Rank 0 alone writes files, and `out` of the others leads nowhere.
  std::shared_ptr<Collectives> group = std::make_shared<OneProcess>();
};

/// How a command ended. Alarm: one of alarm.stop ended the run, with a checkpoint.
enum class RunEnd { Complete, Interrupted, Alarm };

/// SFT, evaluation, reinforcement learning, evaluation, summary. Resumes where the recipe says so, with the
/// settings that the run was made with (run/recorded_settings.h). Holds the folder's lock, as the next two do.
Result<RunEnd> run_training(Recipe& recipe, const RunControl& control);

/// SFT alone, into the run folder itself, and an evaluation.
Result<RunEnd> run_sft(Recipe& recipe, const RunControl& control);

/// Rolls out one step's tasks with the recipe's model and writes rollouts/step_0.jsonl.
Result<RunEnd> run_rollout(Recipe& recipe, const RunControl& control);

/// How the model is prompted.
inline const std::vector<std::string> kAgents{"prompt", "react"};

/// A policy behind an API.
class ApiPolicy {
 public:
  virtual ~ApiPolicy() = default;

  /// As reports name it.
  virtual std::string name() const = 0;

  /// Evaluates it with a recipe whose environment is prepared. Empty if the user stops it.
  virtual Result<std::optional<EvaluatedGroups>> evaluate(const Recipe& recipe, Progress& progress,
                                                          const RunControl& control) = 0;
};

struct EvaluationRequest {
  std::filesystem::path path{};  ///< a run folder (its latest checkpoint), a checkpoint folder of one, or a recipe
  std::vector<std::string> overrides{};  ///< `key=value` over the run's config.yaml, or the recipe
  bool json = false;
  std::string agent = kAgents.front();      ///< the environment's own prompts, or ReAct's (env/react.h)
  std::filesystem::path model{};            ///< instead of the checkpoint or the recipe's: as run/find_run.h finds it
  std::shared_ptr<ApiPolicy> api_policy{};  ///< plays instead; no model is loaded
};

/// Evaluates a checkpoint with the configuration that its run folder holds, or a model with a recipe's.
Result<RunEnd> run_evaluation(const EvaluationRequest& request, const RunControl& control);

/// Writes the resolved configuration, the disk that the run will take, and the memory that each of this many ranks of
/// it will hold, without running it. Fails if the run itself would be refused.
Status dry_run(Recipe& recipe, MemoryStage stage, int ranks, std::ostream& out);

}  // namespace carnot
