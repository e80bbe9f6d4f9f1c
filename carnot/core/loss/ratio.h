// loss/ratio.h -- how much more likely the current policy makes what was sampled, by token, turn or sequence.
#pragma once

#include <ATen/core/Tensor.h>

#include "carnot/core/loss/loss.h"

namespace carnot {

/// Log-ratios are kept within +-20 before the exponential: no infinity, whatever the policies do.
inline constexpr double kMaxLogRatio = 20;
/// The mean log-ratio of a turn or sequence is kept below 10 (GSPO).
inline constexpr double kMaxSegmentLogRatio = 10;

/// Without gradient: the gradient is the slope that loss/clip.h derives from these.
struct Ratio {
  at::Tensor token_log_ratio_T;  ///< current - old, per token, within +-20
  at::Tensor ratio_T;            ///< of the token's own level: exp(mean over its token, turn or sequence)
  at::Tensor bounded_T;          ///< true if a limit above holds the ratio: it does not move with the policy
};

/// Token: exp(l - l_old). Turn and Sequence: exp(mean of l - l_old over the segment), GSPO (arXiv:2507.18071) Eq. 7.
/// REQUIRES: float64 on the CPU.
Ratio policy_ratio(RatioLevel level, const LossInputs& inputs);

}  // namespace carnot
