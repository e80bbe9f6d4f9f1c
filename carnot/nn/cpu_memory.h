// nn/cpu_memory.h -- where the memory of CPU tensors comes from.
#pragma once

namespace carnot {

/// From now on tensors take their memory from allocate_aligned() (base/aligned_memory.h). Idempotent; tensors that are
/// there already stay valid.
void take_aligned_tensor_memory();

/// LibTorch compiles a program for every shape of a bfloat16 product on the CPU and keeps the last thousand, more
/// than a hundred megabytes for numbers of rows that never come again. From now on it keeps few, unless
/// ONEDNN_PRIMITIVE_CACHE_CAPACITY says otherwise. To be called before the first product.
void keep_few_compiled_products();

}  // namespace carnot
