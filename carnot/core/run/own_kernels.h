// run/own_kernels.h -- the kernels of this machine in words: where the words are equal, forward passes have equal bits.
#pragma once

#include <string>

#include "carnot/core/train/recipe.h"

namespace carnot {

/// For the number type of `run`: "avx512 (LibTorch's: AVX512)".
std::string own_kernels(const RunOptions& run);

}  // namespace carnot
