#include "carnot/core/loss/importance.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "carnot/core/loss/ratio.h"

namespace carnot {

at::Tensor importance_weights(const at::Tensor& logprob_old_T, const at::Tensor& logprob_rollout_T, double cap) {
  return (logprob_old_T - logprob_rollout_T).clamp(-kMaxLogRatio, kMaxLogRatio).exp().clamp_max(cap);
}

}  // namespace carnot
