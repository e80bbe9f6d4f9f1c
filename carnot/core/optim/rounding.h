// optim/rounding.h -- float32 to bfloat16: in two halves, without loss, or stochastically, so that sums of small steps
// are right on average.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace carnot {

/// Stores each of `values` (float32) as one of its two neighbours in `into` (bfloat16, as many elements, same device):
/// the upper one with the probability that makes the mean exact. What bfloat16 can hold stays as it is, infinities too.
/// The draws are a function of `key` and the element's number alone: `first` of the first element.
void round_stochastically(const at::Tensor& values, std::uint64_t key, std::int64_t first, const at::Tensor& into);

/// The same by LibTorch's operators, for any device.
void round_stochastically_portable(const at::Tensor& values, std::uint64_t key, std::int64_t first,
                                   const at::Tensor& into);

/// The float32 numbers of which `upper` is the nearest bfloat16 number, ties away from zero, and `lower` (int16) the
/// difference in units of the last bit. `lower` of zeros: the numbers of `upper`. In chunks, on all threads.
at::Tensor join_halves(const at::Tensor& upper, const at::Tensor& lower);
at::Tensor join_halves_portable(const at::Tensor& upper, const at::Tensor& lower);

/// The inverse of join_halves(), without loss.
void split_halves(const at::Tensor& values, const at::Tensor& upper, const at::Tensor& lower);
void split_halves_portable(const at::Tensor& values, const at::Tensor& upper, const at::Tensor& lower);

}  // namespace carnot
