// optim/rounding.h -- float32 to bfloat16: to the nearest, or stochastically, so that sums of small steps are right on
// average.
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

/// into = values, rounded to the nearest where `into` is narrower. From float32 to bfloat16 on the CPU, on all threads.
void copy_rounded(const at::Tensor& values, const at::Tensor& into);

}  // namespace carnot
