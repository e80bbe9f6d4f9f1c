// optim/rounding_kernel.h -- stochastic rounding's inner loop over plain arrays. No LibTorch: its source is compiled
// for speed by itself.
#pragma once

#include <cstdint>

namespace carnot {

/// As round_stochastically() has it, with the same bits; `into` holds the bits of bfloat16 numbers.
void round_stochastically(const float* values, std::int64_t count, std::uint64_t key, std::int64_t first,
                          std::uint16_t* into);

}  // namespace carnot
