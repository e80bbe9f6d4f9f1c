// train/trainer.h -- one step of reinforcement learning: roll out, filter, measure, credit, pack, update. Names no
// paper.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/collectives/collectives.h"
#include "carnot/core/data/credit_table.h"
#include "carnot/core/objective/adaptive_coefficient.h"
#include "carnot/core/optim/optimizer.h"
#include "carnot/core/rollout/rollout.h"
#include "carnot/core/train/model_bundle.h"
#include "carnot/core/train/old_log_probs.h"
#include "carnot/core/train/packing.h"
#include "carnot/core/train/recipe.h"
#include "carnot/core/train/shard_work.h"
#include "carnot/core/train/step_gather.h"
#include "carnot/core/train/step_tasks.h"

namespace carnot {

/// The results of a step.
struct TrainingStep {
  std::map<std::string, double> metrics{};  ///< docs/metrics.md
  std::vector<Group> groups{};              ///< all that were rolled out; filtered ones are marked
  CreditTable credit{};                     ///< numbered as trajectories(groups)
  std::vector<std::string> failures{};      ///< one sentence per InfraFailed trajectory
  Status trained = Done{};                  ///< fails if so many failed that no update was made
};

/// Rolls out tasks elsewhere, with the policy's current weights or, if allowed, with older ones. It returns what
/// roll_out() would return with those weights, apart from times; or it was stopped.
using RolloutsElsewhere = std::function<Rollout(const StepTasks& tasks, const RolloutEvents& events)>;

class Trainer {
 public:
  /// All must outlive the trainer. The bundle's policy is trained in place. The ranks of `collectives` have the same
  /// recipe and weights, and share the work of each step; the results of a step are the same on all of them. REQUIRES:
  /// check_ranks().
  Trainer(Recipe& recipe, ModelBundle& bundle, Collectives& collectives);

  /// Step number `step` (0-based); a function of the weights, the optimizer, (seed, step) and the number of virtual
  /// shards. Empty if `events` stop it before its update, on any rank. Nothing has changed then, nor if more
  /// trajectories had an infrastructure failure than train.max_infra_failures allows.
  std::optional<TrainingStep> step(std::int64_t step, const RolloutEvents& events = {});

  /// The step without its update: rollouts, signals and credit.
  std::optional<TrainingStep> roll_out_and_measure(std::int64_t step, const RolloutEvents& events = {});

  /// From now on steps get their groups from `rollouts` instead of the trainer's own engine. Call this on all ranks;
  /// rank 0 alone calls the function, and gives the others its results.
  void roll_out_elsewhere(RolloutsElsewhere rollouts) { elsewhere_ = std::move(rollouts); }

  /// The objective's coefficients that follow a metric from step to step, by key; for checkpoints.
  std::map<std::string, double> coefficients() const;
  void set_coefficients(const std::map<std::string, double>& coefficients);

  Engine& engine() { return *generation_.engine; }
  Optimizer& optimizer() { return *optimizer_; }
  Optimizer* critic_optimizer() { return critic_optimizer_.get(); }

 private:
  struct Clock;

  /// Sums over a step's micro-batches and updates.
  struct Sums {
    void add(const BatchReport& report);
    void add(const std::string& name, double value);
    void write(std::map<std::string, double>& metrics) const;

    std::map<std::string, MetricSum> metrics{};
    double compared_tokens = 0, difference = 0, largest_difference = 0;
  };

  /// False if the events stopped it.
  bool roll_out_groups(std::int64_t step, const RolloutEvents& events, TrainingStep& out, Clock& clock);
  Rollout roll_out_once(std::int64_t step, int refill, const RolloutEvents& events);
  void measure(std::vector<Group>& groups, const RolloutEvents& events);
  void measure_own(std::vector<Group>& groups, const RolloutEvents& events);
  void measure_by_continuations(std::vector<Group>& groups, const RolloutEvents& events);
  OldLogProbs old_log_probs() const { return {recipe_.rollout, *bundle_.policy, optimizer_->num_updates()}; }
  void adapt_coefficients(const TrainingStep& out);
  void use_coefficients();
  void update(std::int64_t step, const std::vector<Trajectory>& views, TrainingStep& out);
  /// What the passes of the micro-batches measured; `sums` gets what the update itself did.
  std::vector<BatchReport> update_minibatch(std::int64_t step, const std::vector<MicroBatch>& batches, Sums& sums);
  /// Leaves the gradients of all micro-batches where the optimizers take them.
  std::vector<BatchReport> accumulate_all(std::int64_t step, const std::vector<MicroBatch>& batches);
  /// `share`: of the update's rows that are in the batch.
  BatchReport accumulate(const MicroBatch& batch, double share);

  Recipe& recipe_;
  ModelBundle& bundle_;
  Collectives& collectives_;
  Generation generation_;
  ShardWork work_;
  RolloutsElsewhere elsewhere_{};
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Optimizer> critic_optimizer_;
  bool weights_changed_ = false;  ///< by the step's updates so far
  ObjectiveOptions objective_;    ///< the recipe's, with its coefficients as they are now
  EntropyCoefficient entropy_coefficient_;
  KlCoefficient kl_coefficient_;
};

}  // namespace carnot
