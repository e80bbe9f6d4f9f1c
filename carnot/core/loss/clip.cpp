#include "carnot/core/loss/clip.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

namespace carnot {

Surrogate clipped_surrogate(const ObjectiveOptions& options, const Ratio& ratio, const at::Tensor& advantage_T,
                            const at::Tensor& clip_scale_T) {
  const at::Tensor low_T = 1 - options.clip_low * clip_scale_T;
  const at::Tensor high_T = 1 + options.clip_high * clip_scale_T;
  const at::Tensor above_T = (advantage_T > 0).logical_and(ratio.ratio_T > high_T);
  const at::Tensor below_T = (advantage_T < 0).logical_and(ratio.ratio_T < low_T);
  at::Tensor value_T = at::where(above_T, high_T, at::where(below_T, low_T, ratio.ratio_T));
  at::Tensor dual_T = at::zeros_like(above_T);
  if (options.dual_clip > 0) {
    dual_T = (advantage_T < 0).logical_and(value_T > options.dual_clip);
    value_T = value_T.masked_fill(dual_T, options.dual_clip);
  }

  const at::Tensor flat_T = above_T.logical_or(below_T).logical_or(dual_T).logical_or(ratio.bounded_T);
  at::Tensor slope_T = ratio.ratio_T.masked_fill(flat_T, 0);
  if (options.clip_gradient == ClipGradient::Preserve) slope_T = at::where(above_T, high_T, slope_T);
  return {.value_T = value_T, .slope_T = slope_T, .clipped_T = above_T.logical_or(below_T), .dual_clipped_T = dual_T};
}

}  // namespace carnot
