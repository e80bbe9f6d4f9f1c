// kernel/kernel_choice.h -- the environment variable CARNOT_KERNELS limits the instruction sets of the kernels, so that
// machines with different processors compute with the same set, and so the same bits.
#pragma once

#include <string_view>

#include "carnot/core/base/result.h"

namespace carnot::kernel {

/// Whether the kernels can use this set: CARNOT_KERNELS is not set, or names this set or a wider one. From narrow to
/// wide: baseline, avx2, avx512, avx512_bf16, amx; the last two have only bfloat16 products and attention. A value that
/// check_kernel_choice() refuses is ignored.
bool may_use(std::string_view set);

/// Fails if CARNOT_KERNELS is set to an unknown name.
Status check_kernel_choice();

}  // namespace carnot::kernel
