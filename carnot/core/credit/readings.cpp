#include "carnot/core/credit/readings.h"

#include <algorithm>
#include <limits>

namespace carnot {

std::vector<double>& RuleReadings::list(std::string_view name, std::size_t trajectory) {
  auto found = std::ranges::find(all_, name, &RuleReading::name);
  if (found == all_.end()) {
    all_.push_back({.name = std::string(name)});
    found = all_.end() - 1;
    for (const Trajectory& one : trajectories_)
      found->values.emplace_back(one.num_tokens(), std::numeric_limits<double>::quiet_NaN());
  }
  return found->values[trajectory];
}

void RuleReadings::set_token(std::string_view name, std::size_t trajectory, std::size_t token, double value) {
  list(name, trajectory)[token] = value;
}

void RuleReadings::set_turn(std::string_view name, std::size_t trajectory, int k, double value) {
  const Trajectory& one = trajectories_[trajectory];
  std::fill_n(list(name, trajectory).begin() + one.sampled_begin(k), one.turn(k).num_sampled(), value);
}

void RuleReadings::set_all(std::string_view name, std::size_t trajectory, double value) {
  for (int k = 0; k < trajectories_[trajectory].num_turns(); ++k) set_turn(name, trajectory, k, value);
}

void RuleReadings::set_list(std::string_view name, std::size_t trajectory, std::span<const double> values) {
  const std::vector<bool> sampled = trajectories_[trajectory].sampled();
  for (std::size_t t = 0; t < sampled.size(); ++t)
    if (sampled[t]) set_token(name, trajectory, t, values[t]);
}

}  // namespace carnot
