// nn/cpu_memory.h -- where the memory of CPU tensors comes from.
#pragma once

namespace carnot {

/// From now on tensors take their memory from malloc and align it themselves. LibTorch asks for aligned memory, and
/// glibc before 2.38 never gives a freed aligned block to a request of the same size: the heap fills with holes, and a
/// run's peak was up to a quarter higher. Idempotent; tensors that are there already stay valid.
void take_tensor_memory_from_malloc();

/// LibTorch compiles a program for every shape of a bfloat16 product on the CPU and keeps the last thousand, a few
/// hundred megabytes of rows that never come again. From now on it keeps few, unless ONEDNN_PRIMITIVE_CACHE_CAPACITY
/// says otherwise. To be called before the first product.
void keep_few_compiled_products();

}  // namespace carnot
