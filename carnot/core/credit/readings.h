// credit/readings.h -- what credit rules looked at, token by token, for those who ask why a token got its credit.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/data/trajectory.h"

namespace carnot {

/// One quantity: a list per trajectory with an entry per token, NaN for those that were not read.
struct RuleReading {
  std::string name{};
  std::vector<std::vector<double>> values{};
};

/// Collects the readings of one rule, in the order in which they are first named.
class RuleReadings {
 public:
  explicit RuleReadings(std::span<const Trajectory> trajectories) : trajectories_(trajectories) {}

  void set_token(std::string_view name, std::size_t trajectory, std::size_t token, double value);
  /// On every sampled token of turn k, or of the whole trajectory.
  void set_turn(std::string_view name, std::size_t trajectory, int k, double value);
  void set_all(std::string_view name, std::size_t trajectory, double value);
  /// `values` has an entry per token; only those of sampled tokens are kept.
  void set_list(std::string_view name, std::size_t trajectory, std::span<const double> values);

  const std::vector<RuleReading>& all() const { return all_; }

 private:
  std::vector<double>& list(std::string_view name, std::size_t trajectory);

  std::span<const Trajectory> trajectories_;
  std::vector<RuleReading> all_{};
};

}  // namespace carnot
