// remote_rollouts/remote_rollouts.h -- a training run's rollouts by workers (rollout.workers): what they need is
// served, the steps' groups are handed out as tasks, and what comes back is put together as one rollout.
//
// With rollout.max_staleness tasks of later steps are handed out, too, and results come while the trainer updates.
// Which groups a step has does not depend on that, only the weights that sampled them do
// (remote_rollouts/transport/staleness.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/run/rollout_service.h"
#include "carnot/core/train/model_bundle.h"
#include "carnot/core/train/recipe.h"
#include "carnot/core/train/trainer.h"
#include "carnot/remote_rollouts/transport/staleness.h"
#include "carnot/remote_rollouts/transport/task_board.h"

namespace carnot {

/// What can be refused before anything is loaded: an address or a key that cannot be, a broker that refuses.
Status check_workers(const Recipe& recipe);

/// What a task of the queue represents.
StepTasks tasks_of(const WorkerTask& task);

class RemoteRollouts final : public RolloutService {
 public:
  /// Meets the broker and announces the run; waits for the broker where it is away. Null if `go_on` ended that. The
  /// weights of a step are written into `folder` for a moment. Tasks of steps from `steps` on are never handed out.
  /// Recipe and bundle must outlive it.
  static Result<std::unique_ptr<RemoteRollouts>> open(Recipe& recipe, ModelBundle& bundle, std::filesystem::path folder,
                                                      std::int64_t steps, const GoOn& go_on);

  Rollout roll_out(const StepTasks& tasks, const RolloutEvents& events) override;

  /// Of what was rolled out since the last call: how trainer and workers waited for each other, and in asynchronous
  /// mode how old the weights were (docs/metrics.md).
  std::map<std::string, double> take_metrics() override;

  const std::optional<Error>& failure() const override { return failure_; }

 private:
  struct StepSums {
    double turns = 0, staleness = 0, largest_staleness = 0;
    double weight_swaps = 0, tasks_again = 0;
    double trainer_idle = 0, worker_idle = 0;                          ///< seconds
    double other_tokens = 0, other_difference = 0, other_seconds = 0;  ///< of workers with other kernels
  };

  struct TakenResult {
    Rollout rollout{};
    bool other_kernels = false;  ///< than this machine's
  };

  RemoteRollouts(Recipe& recipe, ModelBundle& bundle, std::filesystem::path folder, std::int64_t steps,
                 std::unique_ptr<TaskBoard> board);

  Status serve_setup();
  Result<WorkerFile> serve_tensors(const std::vector<NamedTensor>& tensors);
  /// Announces the policy's weights, unless they are those of `version` already.
  Result<bool> announce_weights(std::int64_t version, const GoOn& go_on);
  Result<Rollout> collect(const StepTasks& tasks, const RolloutEvents& events);
  /// These and, as far as the bound allows, later steps' are handed out, those that are not yet.
  Result<bool> hand_out(const StepTasks& tasks, const GoOn& go_on);
  /// As messages of the queue.
  std::vector<WorkerTask> messages_of(const StepTasks& tasks) const;
  /// On one of the server's threads.
  Result<TaskBoard::Verdict> take(const WorkerTask& task, const WorkerResult& result);
  /// The result of this task; with the log-probabilities that the trainer's kernels give.
  Rollout taken(const WorkerTask& task);
  /// The columns of what other kernels sampled. In asynchronous mode they are only counted: the weights that sampled
  /// may be gone, and the objective takes the log-probabilities of the behaviour policy, which are those of who
  /// sampled.
  void measure_again(Rollout& rollout);
  /// The results of these tasks, in their order.
  Rollout put_together(const std::vector<WorkerTask>& tasks);
  void add_to_sums(std::int64_t step, const Rollout& rollout, double waited);

  Recipe& recipe_;
  ModelBundle& bundle_;
  std::filesystem::path folder_;
  std::string kernels_;
  std::int64_t asked_before_ = 0;  ///< tasks of the steps before this one are handed out
  std::mutex mutex_{};             ///< of the three below
  StalenessBound bound_;
  std::map<std::string, TakenResult> results_{};  ///< by the tasks' keys
  StepSums sums_{};
  std::int64_t bytes_reported_ = 0;  ///< sent to workers, as of the last metrics
  std::optional<Error> failure_{};
  std::unique_ptr<TaskBoard> board_;  ///< last, since its threads call take()
};

/// Makes it the service of recipes with rollout.workers.
void offer_remote_rollouts();

}  // namespace carnot
