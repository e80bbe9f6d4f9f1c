#include "carnot/credit/gae.h"

#include <cmath>

#include "carnot/base/check.h"

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

void apply_gae(std::span<const Trajectory> trajectories, CreditTable& table, const GaeOptions& options) {
  std::vector<std::vector<double>> advantage(trajectories.size());
  for (std::size_t i = 0; i < trajectories.size(); ++i) {
    const Trajectory& one = trajectories[i];
    if (!one.leaf().counts()) continue;
    CARNOT_CHECK(one.tree->columns.has(Column::Value), "GAE needs the critic's values");
    const std::vector<double> value = one.column(Column::Value);
    advantage[i] = advantages(one, table[i].reward, value, options);
    const std::vector<bool> sampled = one.sampled();
    for (std::size_t t = 0; t < value.size(); ++t)
      if (sampled[t]) table[i].value_target[t] = advantage[i][t] + value[t];
  }
  if (options.whiten) whiten_sampled(trajectories, advantage, options.whitening);
  for (std::size_t i = 0; i < trajectories.size(); ++i) {
    const std::vector<bool> sampled = trajectories[i].sampled();
    for (std::size_t t = 0; t < advantage[i].size(); ++t)
      if (sampled[t]) table[i].advantage[t] += advantage[i][t];
  }
}

}  // namespace

void GaeOptions::fields(FieldVisitor& visit) {
  visit.field("gamma", gamma, "discount per sampled token", between(0, 1));
  visit.field("lambda", lambda, "0: one-step differences, 1: whole returns", between(0, 1));
  visit.field("whiten", whiten, "normalise advantages over all sampled tokens of the step");
}

CreditRule gae(const GaeOptions& options) {
  return {.name = "gae",
          .apply = [options](std::span<const Trajectory> trajectories,
                             CreditTable& table) { apply_gae(trajectories, table, options); },
          .columns = {Column::Value}};
}

}  // namespace carnot
