// kernel/gemm/transpose.h -- matrices turned, so that a product over their rows reads them one after the other.
#pragma once

#include <cstdint>

namespace carnot::kernel {

/// out[j * out_stride + i] = in[i * in_stride + j] for i < rows and j < columns. Number: float, double or BFloat16.
template <class Number>
void transpose(const Number* in, std::int64_t rows, std::int64_t in_stride, std::int64_t columns, Number* out,
               std::int64_t out_stride);

}  // namespace carnot::kernel
