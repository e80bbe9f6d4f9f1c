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

#include "carnot/base/result.h"
#include "carnot/distributed/collectives.h"
#include "carnot/openai/chat_endpoint.h"
#include "carnot/run/memory_budget.h"
#include "carnot/train/recipe.h"

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

/// How a command ended well.
enum class RunEnd { Complete, Interrupted };

/// SFT, evaluation, reinforcement learning, evaluation, summary. Resumes where the recipe says so, with the
/// settings that the run was made with (run/resumed_settings.h). Holds the folder's lock, as the next two do.
Result<RunEnd> run_training(Recipe& recipe, const RunControl& control);

/// SFT alone, into the run folder itself, and an evaluation.
Result<RunEnd> run_sft(Recipe& recipe, const RunControl& control);

/// Rolls out one step's tasks with the recipe's model and writes rollouts/step_0.jsonl.
Result<RunEnd> run_rollout(Recipe& recipe, const RunControl& control);

/// How the model is prompted.
inline const std::vector<std::string> kAgents{"prompt", "react"};

struct EvaluationRequest {
  std::filesystem::path path{};  ///< a run folder (its latest checkpoint), a checkpoint folder of one, or a recipe
  std::vector<std::string> overrides{};  ///< `key=value` over the run's config.yaml, or the recipe
  bool json = false;
  std::string agent = kAgents.front();  ///< the environment's own prompts, or ReAct's (env/react/react.h)
  std::filesystem::path model{};        ///< instead of the checkpoint or the recipe's: as run/find_run.h finds it
  ChatEndpointOptions endpoint{};       ///< with a URL: who plays instead; no model is loaded
  std::filesystem::path transcripts{};  ///< with an endpoint: the file that gets all conversations; empty: none
};

/// Evaluates a checkpoint with the configuration that its run folder holds, or a model with a recipe's.
Result<RunEnd> run_evaluation(const EvaluationRequest& request, const RunControl& control);

/// Writes the resolved configuration, the disk that the run will take, and the memory that each of so many ranks of it
/// will hold, without running it.
/// Fails where the run itself would be refused.
Status dry_run(Recipe& recipe, MemoryStage stage, int ranks, std::ostream& out);

}  // namespace carnot
