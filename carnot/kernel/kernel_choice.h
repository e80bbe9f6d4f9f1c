// kernel/kernel_choice.h -- which instruction sets the kernels may use, where the environment's variable CARNOT_KERNELS
// says so: machines of different processors then compute with one set, and so the same bits.
#pragma once

#include <string_view>

#include "carnot/base/result.h"

namespace carnot::kernel {

/// Whether the kernels may use this set: CARNOT_KERNELS says nothing, or names this set or a wider one. From narrow to
/// wide: baseline, avx2, avx512, avx512_bf16, amx; the last two have products and attention of bfloat16 alone. What
/// check_kernel_choice() refuses counts as nothing.
bool may_use(std::string_view set);

/// Fails where CARNOT_KERNELS names no set.
Status check_kernel_choice();

}  // namespace carnot::kernel
