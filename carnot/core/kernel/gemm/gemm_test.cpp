#include "carnot/core/kernel/gemm/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "carnot/core/base/random.h"
#include "carnot/core/base/thread_pool.h"

namespace carnot::kernel {
namespace {

template <class T>
std::vector<T> random_values(std::int64_t count, std::uint64_t seed) {
  RandomStream stream(seed);
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(stream.normal());
  return values;
}

/// C(i, j) = sum_k A(i, k) B(k, j), term by term.
template <class T>
std::vector<double> product(const std::vector<T>& a, const std::vector<T>& b, std::int64_t m, std::int64_t k,
                            std::int64_t n) {
  std::vector<double> c(m * n, 0.0);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t p = 0; p < k; ++p)
      for (std::int64_t j = 0; j < n; ++j) c[i * n + j] += double(a[i * k + p]) * double(b[p * n + j]);
  return c;
}

template <class T>
std::vector<T> transposed(const std::vector<T>& x, std::int64_t rows, std::int64_t columns) {
  std::vector<T> y(x.size());
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) y[j * rows + i] = x[i * columns + j];
  return y;
}

template <class T>
class Gemm : public ::testing::Test {};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Gemm, Scalars);

constexpr std::int64_t kShapes[][3] = {{1, 1, 1},     {5, 7, 3},       {12, 256, 32},
                                       {13, 257, 33}, {193, 300, 130}, {64, 515, 17}};

TYPED_TEST(Gemm, EqualsTheSumOfProductsForEveryLayout) {
  using T = TypeParam;
  const double tolerance = sizeof(T) == 4 ? 2e-4 : 1e-12;
  for (const auto& [m, k, n] : kShapes) {
    const auto a = random_values<T>(m * k, 1), b = random_values<T>(k * n, 2);
    const auto expected = product(a, b, m, k, n);
    const auto a_columns = transposed(a, m, k), b_rows = transposed(b, k, n);
    PackedMatrix<T> from_rows, from_columns;
    const typename PackedMatrix<T>::Rows weight{.data = b_rows.data(), .count = n, .row_stride = k};
    const typename PackedMatrix<T>::Rows plain{.data = b.data(), .count = k, .row_stride = n};
    from_rows.pack_transposed({&weight, 1}, k);
    from_columns.pack({&plain, 1}, n);
    for (const auto* packed : {&from_rows, &from_columns}) {
      for (bool strided : {false, true}) {
        const StridedMatrix<T> left =
            strided ? StridedMatrix<T>{a_columns.data(), m, 1, m} : StridedMatrix<T>{a.data(), m, k, 1};
        std::vector<T> c(m * n, T(3));
        gemm(left, *packed, c.data(), n, false);
        gemm(left, *packed, c.data(), n, true);
        for (std::size_t i = 0; i < c.size(); ++i)
          ASSERT_NEAR(c[i], 2 * expected[i], tolerance * std::sqrt(double(k)))
              << m << "x" << k << "x" << n << " at " << i;
      }
    }
  }
}

TYPED_TEST(Gemm, ARowsBitsDoNotDependOnTheOtherRows) {
  using T = TypeParam;
  const std::int64_t m = 230, k = 300, n = 70;
  const auto a = random_values<T>(m * k, 3), b = random_values<T>(n * k, 4);
  PackedMatrix<T> packed;
  const typename PackedMatrix<T>::Rows weight{.data = b.data(), .count = n, .row_stride = k};
  packed.pack_transposed({&weight, 1}, k);
  std::vector<T> whole(m * n);
  gemm(StridedMatrix<T>{a.data(), m, k, 1}, packed, whole.data(), n, false);
  for (std::int64_t rows = 1; rows <= 40; ++rows) {
    for (std::int64_t first : {std::int64_t(0), std::int64_t(3), std::int64_t(187)}) {
      std::vector<T> part(rows * n);
      gemm(StridedMatrix<T>{a.data() + first * k, rows, k, 1}, packed, part.data(), n, false);
      ASSERT_EQ(std::memcmp(part.data(), whole.data() + first * n, part.size() * sizeof(T)), 0)
          << rows << " rows from " << first;
    }
  }
}

TYPED_TEST(Gemm, OneThreadEqualsThreeBitForBit) {
  using T = TypeParam;
  const std::int64_t m = 500, k = 600, n = 200;
  const auto a = random_values<T>(m * k, 5), b = random_values<T>(n * k, 6);
  PackedMatrix<T> packed;
  const typename PackedMatrix<T>::Rows plain{.data = b.data(), .count = k, .row_stride = n};
  std::vector<T> results[2];
  for (int i = 0; i < 2; ++i) {
    set_num_threads(i == 0 ? 1 : 3);
    packed.pack({&plain, 1}, n);
    results[i].resize(m * n);
    gemm(StridedMatrix<T>{a.data(), m, k, 1}, packed, results[i].data(), n, false);
  }
  set_num_threads(1);
  EXPECT_EQ(std::memcmp(results[0].data(), results[1].data(), results[0].size() * sizeof(T)), 0);
}

TYPED_TEST(Gemm, OfNoDepthIsZero) {
  using T = TypeParam;
  PackedMatrix<T> packed;
  packed.pack(std::span<const typename PackedMatrix<T>::Rows>(), 3);
  std::vector<T> c{1, 2, 3, 4, 5, 6, 7, 8};
  gemm(StridedMatrix<T>{nullptr, 2, 0, 1}, packed, c.data(), 4, true);
  EXPECT_EQ(c, (std::vector<T>{1, 2, 3, 4, 5, 6, 7, 8}));
  gemm(StridedMatrix<T>{nullptr, 2, 0, 1}, packed, c.data(), 4, false);
  EXPECT_EQ(c, (std::vector<T>{0, 0, 0, 4, 0, 0, 0, 8}));
}

TYPED_TEST(Gemm, SeveralWeightsStandSideBySide) {
  using T = TypeParam;
  const std::int64_t m = 20, k = 33;
  const auto a = random_values<T>(m * k, 7), b = random_values<T>(50 * k, 8);
  PackedMatrix<T> together, alone;
  const typename PackedMatrix<T>::Rows parts[] = {
      {b.data(), 10, k}, {b.data() + 10 * k, 7, k}, {b.data() + 17 * k, 33, k}};
  const typename PackedMatrix<T>::Rows whole{b.data(), 50, k};
  together.pack_transposed(parts, k);
  alone.pack_transposed({&whole, 1}, k);
  std::vector<T> c(m * 50), d(c);
  gemm(StridedMatrix<T>{a.data(), m, k, 1}, together, c.data(), 50, false);
  gemm(StridedMatrix<T>{a.data(), m, k, 1}, alone, d.data(), 50, false);
  EXPECT_EQ(c, d);
}

}  // namespace
}  // namespace carnot::kernel
