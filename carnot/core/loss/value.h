// loss/value.h -- the critic's loss: squared error, with new values kept near the old ones (PPO).
#pragma once

#include <ATen/core/Tensor.h>

namespace carnot {

struct ValueError {
  at::Tensor loss_T;     ///< max((v - R)^2, (clip(v, v_old - c, v_old + c) - R)^2) / 2, gradient
  at::Tensor clipped_T;  ///< true if the clipped value gives the larger error
};

ValueError clipped_value_error(const at::Tensor& value_T, const at::Tensor& value_old_T, const at::Tensor& target_T,
                               double clip);

}  // namespace carnot
