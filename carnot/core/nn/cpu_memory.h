// nn/cpu_memory.h -- memory settings for tensors on the CPU.
#pragma once

#include <ATen/core/Tensor.h>

namespace carnot {

/// From now on, tensors are allocated with allocate_aligned() (base/aligned_memory.h). Idempotent; existing tensors
/// remain valid.
void take_aligned_tensor_memory();

/// LibTorch compiles a program for every shape of a bfloat16 product on the CPU and caches the last thousand: more than
/// a hundred megabytes for numbers of rows that never recur. This limits the cache to a few, unless
/// ONEDNN_PRIMITIVE_CACHE_CAPACITY is set. Call it before the first product.
void keep_few_compiled_products();

/// Zeros on the CPU that take memory page by page, when they are first written.
at::Tensor untouched_zeros(at::IntArrayRef shape, const at::TensorOptions& options);

/// Returns the memory of untouched_zeros() to the system: they are zeros as at first.
void give_back_memory(const at::Tensor& zeros);

}  // namespace carnot
