#include "carnot/core/loss/ratio.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "carnot/core/loss/sums.h"

namespace carnot {

Ratio policy_ratio(RatioLevel level, const LossInputs& inputs) {
  const at::Tensor log_ratio_T = inputs.logprob_T.detach() - inputs.logprob_old_T;
  const at::Tensor token_log_ratio_T = log_ratio_T.clamp(-kMaxLogRatio, kMaxLogRatio);
  if (level == RatioLevel::Token)
    return {.token_log_ratio_T = token_log_ratio_T,
            .ratio_T = token_log_ratio_T.exp(),
            .bounded_T = log_ratio_T.abs() > kMaxLogRatio};

  const at::Tensor mean_T = level == RatioLevel::Turn
                                ? segment_mean(log_ratio_T, inputs.turn_T, inputs.num_turns)
                                : segment_mean(log_ratio_T, inputs.sequence_T, inputs.num_sequences);
  return {.token_log_ratio_T = token_log_ratio_T,
          .ratio_T = mean_T.clamp(-kMaxLogRatio, kMaxSegmentLogRatio).exp(),
          .bounded_T = (mean_T < -kMaxLogRatio).logical_or(mean_T > kMaxSegmentLogRatio)};
}

}  // namespace carnot
