// nn/lora.h -- low-rank adapters (LoRA, Hu et al. 2021): y = x W^T + alpha / rank (x A^T) B^T, where W is frozen.
#pragma once

#include <ATen/core/Tensor.h>

#include "carnot/core/nn/lora_options.h"

namespace carnot {

/// One projection's adapter; undefined if it has none.
struct Adapter {
  at::Tensor a{};  ///< [rank, K]
  at::Tensor b{};  ///< [N, rank]
};

}  // namespace carnot
