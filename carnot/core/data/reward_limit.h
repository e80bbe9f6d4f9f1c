// data/reward_limit.h -- how large rewards may be.
#pragma once

namespace carnot {

/// Of a turn's reward and penalty, a score, and a measure: its square and the sum over any group stay exact enough.
inline constexpr double kLargestReward = 1e9;

}  // namespace carnot
