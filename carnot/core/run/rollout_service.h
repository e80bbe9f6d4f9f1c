// run/rollout_service.h -- a run's rollouts by other processes (rollout.workers), as the run sees them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "carnot/core/base/result.h"
#include "carnot/core/collectives/collectives.h"
#include "carnot/core/train/model_bundle.h"
#include "carnot/core/train/recipe.h"
#include "carnot/core/train/trainer.h"

namespace carnot {

class RolloutService {
 public:
  virtual ~RolloutService() = default;

  /// A RolloutsElsewhere: the same groups as roll_out() makes, in the same order. It waits for workers as long as
  /// `events` let it. Stopped where they do not, and where it failed.
  virtual Rollout roll_out(const StepTasks& tasks, const RolloutEvents& events) = 0;

  /// Of what was rolled out since the last call (docs/metrics.md).
  virtual std::map<std::string, double> take_metrics() = 0;

  /// Why it cannot continue, if it cannot.
  virtual const std::optional<Error>& failure() const = 0;
};

/// How a program reaches one.
struct RolloutServiceOffer {
  /// What can be refused before anything is loaded.
  Status (*check)(const Recipe& recipe) = nullptr;
  /// Meets the service for the steps before `steps`; null if `go_on` ended that. The weights of a step are written
  /// into `folder` for a moment. Recipe and bundle must outlive it.
  Result<std::unique_ptr<RolloutService>> (*open)(Recipe& recipe, ModelBundle& bundle, std::filesystem::path folder,
                                                  std::int64_t steps, const std::function<bool()>& go_on) = nullptr;
};

/// Sets what recipes with rollout.workers get, once, when a program starts.
void offer_rollout_service(const RolloutServiceOffer& offer);

/// What can be refused before anything is loaded: a setting, or a build that leaves remote rollouts out.
Status check_rollout_service(const Recipe& recipe);

/// REQUIRES: check_rollout_service(), and a recipe with rollout.workers.
Result<std::unique_ptr<RolloutService>> open_rollout_service(Recipe& recipe, ModelBundle& bundle,
                                                             std::filesystem::path folder, std::int64_t steps,
                                                             const std::function<bool()>& go_on);

/// Why rank 0's service cannot continue, on all ranks; success where it can, or where rank 0 has none. `service`: null
/// on the other ranks.
Status why_not(const RolloutService* service, Collectives& group);

}  // namespace carnot
