// train/trainer.h -- one step of reinforcement learning: roll out, filter, measure, credit, pack, update. Names no
// paper.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "carnot/base/result.h"
#include "carnot/data/credit_table.h"
#include "carnot/objective/adaptive_coefficient.h"
#include "carnot/optim/optimizer.h"
#include "carnot/rollout/rollout.h"
#include "carnot/train/model_bundle.h"
#include "carnot/train/packing.h"
#include "carnot/train/recipe.h"

namespace carnot {

/// What a step leaves after.
struct TrainingStep {
  std::map<std::string, double> metrics{};  ///< docs/metrics.md
  std::vector<Group> groups{};              ///< all that were rolled out, filtered ones marked
  CreditTable credit{};                     ///< numbered as trajectories(groups)
  std::vector<std::string> failures{};      ///< one sentence per InfraFailed trajectory
  Status trained = Done{};                  ///< fails where so many failed that no update was made
};

class Trainer {
 public:
  /// Both must outlive the trainer. The bundle's policy is trained in place.
  Trainer(Recipe& recipe, ModelBundle& bundle);

  /// Step number `step` (0-based); a function of the weights, the optimizer and (seed, step). None where `events` end
  /// it before its update: then nothing has changed. Nor has it where more trajectories had an infrastructure failure
  /// than train.max_infra_failures allows.
  std::optional<TrainingStep> step(std::int64_t step, const RolloutEvents& events = {});

  /// The step without its update: rollouts, signals and credit.
  std::optional<TrainingStep> roll_out_and_measure(std::int64_t step, const RolloutEvents& events = {});

  /// Of the objective, where they follow a metric from step to step; by key. For checkpoints.
  std::map<std::string, double> coefficients() const;
  void set_coefficients(const std::map<std::string, double>& coefficients);

  Engine& engine() { return *generation_.engine; }
  Optimizer& optimizer() { return *optimizer_; }
  Optimizer* critic_optimizer() { return critic_optimizer_.get(); }

 private:
  struct Clock;

  /// How far the rollout's log-probabilities are from those of the training pass, before the first update.
  struct Mismatch {
    void add(const LossInputs& inputs);
    std::map<std::string, double> metrics() const;

    double tokens = 0, absolute = 0, largest = 0;
    bool closed = false;  ///< the weights have changed since
  };

  /// False where the events ended it.
  bool roll_out_groups(std::int64_t step, const RolloutEvents& events, TrainingStep& out, Clock& clock);
  Rollout roll_out_once(std::int64_t step, int refill, const RolloutEvents& events);
  void measure(std::vector<Group>& groups);
  void adapt_coefficients(const TrainingStep& out);
  void use_coefficients();
  void update(std::int64_t step, const std::vector<Trajectory>& views, TrainingStep& out);
  /// Returns the log-probabilities that the update started from, by micro-batch.
  std::vector<at::Tensor> update_minibatch(std::int64_t step, const std::vector<MicroBatch>& batches,
                                           std::map<std::string, MetricSum>& sums, std::map<std::string, double>& last);
  at::Tensor accumulate(const MicroBatch& batch, std::map<std::string, MetricSum>& sums);

  Recipe& recipe_;
  ModelBundle& bundle_;
  Generation generation_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Optimizer> critic_optimizer_;
  Mismatch mismatch_;
  ObjectiveOptions objective_;  ///< the recipe's, with its coefficients as they are now
  EntropyCoefficient entropy_coefficient_;
  KlCoefficient kl_coefficient_;
};

/// name and tensor of every weight, for an optimizer.
Optimizer::Parameters optimizer_parameters(const std::vector<NamedTensor>& weights);

}  // namespace carnot
