// nn/rotary.h -- rotary positions: tables of cosines and sines.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "carnot/nn/model_config.h"

namespace carnot {

/// Cosine and sine of the rotary positions' angles, computed once for positions [0, count). Frequencies as
/// config.rope_scaling says: positions divided by a factor (linear), only slow frequencies divided, as Llama 3.1 does
/// (llama3) or as YaRN does (arXiv 2309.00071, section 3.4). float64 where `options` ask for it, else float32.
struct RotaryTable {
  at::Tensor cosine;  ///< [count, head_dim / 2]
  at::Tensor sine;
};
RotaryTable rotary_table(const ModelConfig& config, std::int64_t count, const at::TensorOptions& options);

}  // namespace carnot
