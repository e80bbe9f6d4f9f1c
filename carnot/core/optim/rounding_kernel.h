// optim/rounding_kernel.h -- the inner loops of rounding over plain arrays. No LibTorch: their source is compiled for
// speed by itself.
#pragma once

#include <cstdint>

namespace carnot {

/// As round_stochastically() has it, with the same bits; `into` holds the bits of bfloat16 numbers.
void round_stochastically(const float* values, std::int64_t count, std::uint64_t key, std::int64_t first,
                          std::uint16_t* into);

/// As join_halves() and split_halves() of tensors have it; `upper` holds the bits of bfloat16 numbers.
void join_halves(const std::uint16_t* upper, const std::int16_t* lower, std::int64_t count, float* values);
void split_halves(const float* values, std::int64_t count, std::uint16_t* upper, std::int16_t* lower);

}  // namespace carnot
