// nn/rotary.h -- rotary positions: tables of cosines and sines.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "carnot/core/nn/layer_plan.h"

namespace carnot {

/// Cosine and sine of the rotary positions' angles, computed once for positions [0, count). The scaling selects the
/// frequencies: positions divided by a factor (linear), only slow frequencies divided, as in Llama 3.1 (llama3)
/// or YaRN (arXiv 2309.00071, section 3.4), or each divided by its short factor (longrope). float64 if `options`
/// request it, else float32.
struct RotaryTable {
  at::Tensor cosine;  ///< [count, dim / 2]
  at::Tensor sine;
  at::Tensor query_scale;  ///< [count], multiplies rotated queries; undefined: nothing does
};
RotaryTable rotary_table(const RotarySettings& settings, std::int64_t count, const at::TensorOptions& options);

}  // namespace carnot
