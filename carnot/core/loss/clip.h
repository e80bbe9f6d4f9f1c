// loss/clip.h -- the clipped surrogate, as the value and the slope of each token's ratio.
//
//   region                                   value          slope (gradient with respect to the log-ratio)
//   A >= 0, ratio > 1 + clip_high s          1 + clip_high s   0, or 1 + clip_high s with ClipGradient::Preserve
//   A < 0,  ratio < 1 - clip_low s           1 - clip_low s    0
//   A < 0,  ratio > dual_clip                dual_clip         0
//   elsewhere                                ratio             ratio
//
// s is the token's clip_scale. PPO (arXiv:1707.06347) Eq. 7, dual clip (arXiv:1912.09729) Eq. 5, gradient-preserving
// clip: AEPO (arXiv:2510.14545) Eq. 7 to 9. Stating the slope makes the last one a table entry.
#pragma once

#include <ATen/core/Tensor.h>

#include "carnot/core/loss/ratio.h"
#include "carnot/core/objective/options.h"

namespace carnot {

/// The token's loss is -A (value + slope d), d the change of its log-ratio.
struct Surrogate {
  at::Tensor value_T;
  at::Tensor slope_T;
  at::Tensor clipped_T;       ///< true if the clip range binds
  at::Tensor dual_clipped_T;  ///< true if the dual clip binds
};

Surrogate clipped_surrogate(const ObjectiveOptions& options, const Ratio& ratio, const at::Tensor& advantage_T,
                            const at::Tensor& clip_scale_T);

}  // namespace carnot
