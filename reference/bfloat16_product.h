// reference/bfloat16_product.h -- products of bfloat16 numbers with float32 sums, one sum at a time, in the orders that
// processors add in.
#pragma once

#include <cstdint>
#include <vector>

namespace carnot::reference {

enum class SumOrder {
  InOrder,       ///< one depth after the other
  OddEvenPairs,  ///< of each pair of depths first the odd one, then the even one: Intel's manual on VDPBF16PS
  Tiles,         ///< 32 depths at a time, the even ones and the odd ones, both sums added: Intel's manual on TDPBF16PS
};

/// C [m, n] = A [m, k] B [k, n]; all numbers are bfloat16 ones, so that each product is exact.
std::vector<float> bfloat16_product(const std::vector<float>& a, const std::vector<float>& b, std::int64_t m,
                                    std::int64_t k, std::int64_t n, SumOrder order);

}  // namespace carnot::reference
