#include "carnot/core/run/rollout_service.h"

#include <utility>

namespace carnot {
namespace {

RolloutServiceOffer offered;

}  // namespace

void offer_rollout_service(const RolloutServiceOffer& offer) { offered = offer; }

Status check_rollout_service(const Recipe& recipe) {
  if (offered.check != nullptr) return offered.check(recipe);
  if (recipe.rollout.workers.address.empty()) return Done{};
  return Error{"rollout.workers: this build of carnot has no remote rollouts; `./run build` adds them"};
}

Result<std::unique_ptr<RolloutService>> open_rollout_service(Recipe& recipe, ModelBundle& bundle,
                                                             std::filesystem::path folder, std::int64_t steps,
                                                             const std::function<bool()>& go_on) {
  CARNOT_CHECK(offered.open != nullptr, "no rollout service was offered");
  return offered.open(recipe, bundle, std::move(folder), steps, go_on);
}

Status why_not(const RolloutService* service, Collectives& group) {
  return on_first_rank(group, "asking about workers", [&]() -> Status {
    return service && service->failure() ? Status(*service->failure()) : Status(Done{});
  });
}

}  // namespace carnot
