#include "carnot/core/loss/value.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

namespace carnot {

ValueError clipped_value_error(const at::Tensor& value_T, const at::Tensor& value_old_T, const at::Tensor& target_T,
                               double clip) {
  const at::Tensor near_T = at::min(at::max(value_T, value_old_T - clip), value_old_T + clip);
  const at::Tensor error_T = (value_T - target_T).square();
  const at::Tensor near_error_T = (near_T - target_T).square();
  return {.loss_T = 0.5 * at::max(error_T, near_error_T), .clipped_T = near_error_T > error_T};
}

}  // namespace carnot
