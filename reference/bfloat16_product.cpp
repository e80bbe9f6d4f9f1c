#include "reference/bfloat16_product.h"

#include <algorithm>

namespace carnot::reference {

std::vector<float> bfloat16_product(const std::vector<float>& a, const std::vector<float>& b, std::int64_t m,
                                    std::int64_t k, std::int64_t n, SumOrder order) {
  const std::int64_t step = order == SumOrder::InOrder ? 1 : order == SumOrder::OddEvenPairs ? 2 : 32;
  std::vector<float> c;
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (std::int64_t first = 0; first < k; first += step) {
        const auto term = [&](std::int64_t p) { return a[i * k + p] * b[p * n + j]; };
        const std::int64_t end = std::min(k, first + step);
        if (order == SumOrder::Tiles) {
          float even = 0, odd = 0;
          for (std::int64_t p = first; p < end; ++p) (p % 2 == 0 ? even : odd) += term(p);
          sum += even + odd;
        } else {
          for (std::int64_t p = end; p-- > first;) sum += term(p);
        }
      }
      c.push_back(sum);
    }
  }
  return c;
}

}  // namespace carnot::reference
