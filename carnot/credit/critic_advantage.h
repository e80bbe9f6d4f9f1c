// credit/critic_advantage.h -- what rules that learn from a critic share: walk, targets, whitening.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "carnot/credit/normalise.h"
#include "carnot/credit/rule.h"

namespace carnot {

/// One trajectory's advantages, token by token, from its token rewards and the critic's values.
using CriticAdvantages = std::function<std::vector<double>(const Trajectory& trajectory, std::span<const double> reward,
                                                           std::span<const double> value)>;

/// Adds the advantages to sampled tokens of trajectories that count, whitened over the step where asked, and sets
/// value_target = advantage before whitening + value. REQUIRES: Column::Value.
void add_critic_advantages(std::span<const Trajectory> trajectories, CreditTable& table, const CriticAdvantages& advantages,
                           const std::optional<Whitening>& whitening);

}  // namespace carnot
