#include "carnot/credit/gae.h"

#include <cmath>

#include "carnot/credit/critic_advantage.h"

namespace carnot {
namespace {

std::vector<double> advantages(const Trajectory& trajectory, std::span<const double> reward,
                               std::span<const double> value, const GaeOptions& options) {
  const std::vector<bool> sampled = trajectory.sampled();
  std::vector<double> advantage(value.size(), 0.0);
  double next_value = 0;
  double running = 0;
  for (std::size_t t = value.size(); t-- > 0;) {
    if (options.skip_unsampled && !sampled[t]) continue;
    const double v = std::isnan(value[t]) && !sampled[t] ? 0 : value[t];
    const double delta = reward[t] + options.gamma * next_value - v;
    running = delta + options.gamma * options.lambda * running;
    next_value = v;
    advantage[t] = running;
  }
  return advantage;
}

}  // namespace

void GaeOptions::fields(FieldVisitor& visit) {
  visit.field("gamma", gamma, "discount per sampled token", between(0, 1));
  visit.field("lambda", lambda, "0: one-step differences, 1: whole returns", between(0, 1));
  visit.field("whiten", whiten, "normalise advantages over all sampled tokens of the step");
}

CreditRule gae(const GaeOptions& options) {
  return {.name = "gae",
          .apply =
              [options](std::span<const Trajectory> trajectories, CreditTable& table) {
                add_critic_advantages(
                    trajectories, table,
                    [&](const Trajectory& trajectory, std::span<const double> reward, std::span<const double> value) {
                      return advantages(trajectory, reward, value, options);
                    },
                    options.whiten ? std::optional(options.whitening) : std::nullopt);
              },
          .columns = {Column::Value}};
}

}  // namespace carnot
