// nn/cpu_memory.h -- memory settings for tensors on the CPU.
#pragma once

namespace carnot {

/// From now on, tensors are allocated with allocate_aligned() (base/aligned_memory.h). Idempotent; existing tensors
/// remain valid.
void take_aligned_tensor_memory();

/// LibTorch compiles a program for every shape of a bfloat16 product on the CPU and caches the last thousand: more than
/// a hundred megabytes for numbers of rows that never recur. This limits the cache to a few, unless
/// ONEDNN_PRIMITIVE_CACHE_CAPACITY is set. Call it before the first product.
void keep_few_compiled_products();

}  // namespace carnot
