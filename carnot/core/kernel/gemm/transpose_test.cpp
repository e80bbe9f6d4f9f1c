#include "carnot/core/kernel/gemm/transpose.h"

#include <gtest/gtest.h>

#include <vector>

#include "carnot/core/kernel/bfloat16.h"

namespace carnot::kernel {
namespace {

template <class Number>
class Transpose : public ::testing::Test {};
using Numbers = ::testing::Types<float, double, BFloat16>;
TYPED_TEST_SUITE(Transpose, Numbers);

template <class Number>
Number numbered(std::int64_t i) {
  if constexpr (std::is_same_v<Number, BFloat16>) {
    return {static_cast<std::uint16_t>(i)};
  } else {
    return static_cast<Number>(i);
  }
}

TYPED_TEST(Transpose, ExchangesRowsAndColumnsOfAnyShape) {
  for (const auto& [rows, columns] : {std::pair{1, 1}, {7, 9}, {8, 8}, {64, 130}, {71, 203}}) {
    const std::int64_t in_stride = columns + 2, out_stride = rows + 3;
    const TypeParam untouched = numbered<TypeParam>(65000);
    std::vector<TypeParam> in, out(static_cast<std::size_t>(columns * out_stride), untouched);
    for (std::int64_t i = 0; i < rows * in_stride; ++i) in.push_back(numbered<TypeParam>(i));
    transpose(in.data(), rows, in_stride, columns, out.data(), out_stride);
    for (std::int64_t j = 0; j < columns; ++j)
      for (std::int64_t i = 0; i < out_stride; ++i)
        ASSERT_TRUE(out[static_cast<std::size_t>(j * out_stride + i)] ==
                    (i < rows ? in[static_cast<std::size_t>(i * in_stride + j)] : untouched))
            << i << " " << j;
  }
}

}  // namespace
}  // namespace carnot::kernel
