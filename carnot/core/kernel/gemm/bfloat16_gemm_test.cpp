#include "carnot/core/kernel/gemm/bfloat16_gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "carnot/core/base/random.h"
#include "carnot/core/base/thread_pool.h"
#include "carnot/core/kernel/gemm/transpose.h"
#include "reference/bfloat16_product.h"
#include "testing/missing.h"

namespace carnot::kernel {
namespace {

using reference::SumOrder;

/// A matrix [rows, columns] of bfloat16 numbers, and the same numbers as float32.
struct Matrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<BFloat16> numbers{};
  std::vector<float> values{};

  BFloat16Rows view(std::int64_t first = 0, std::int64_t count = -1) const {
    return {.data = numbers.data() + first * columns, .rows = count < 0 ? rows - first : count, .row_stride = columns};
  }
};

Matrix matrix_of(std::int64_t rows, std::int64_t columns, const std::vector<float>& values) {
  Matrix matrix{.rows = rows, .columns = columns};
  for (float value : values) {
    matrix.numbers.push_back(rounded(value));
    matrix.values.push_back(widened(matrix.numbers.back()));
  }
  return matrix;
}

Matrix random_matrix(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  RandomStream stream(seed);
  std::vector<float> values;
  for (std::int64_t i = 0; i < rows * columns; ++i) values.push_back(static_cast<float>(stream.normal()));
  return matrix_of(rows, columns, values);
}

Matrix transposed(const Matrix& x) {
  std::vector<float> values(x.values.size());
  for (std::int64_t i = 0; i < x.rows; ++i)
    for (std::int64_t j = 0; j < x.columns; ++j) values[j * x.rows + i] = x.values[i * x.columns + j];
  return matrix_of(x.columns, x.rows, values);
}

PackedBFloat16 packed(const Matrix& b) {
  PackedBFloat16 packed;
  const BFloat16Rows view = b.view();
  packed.pack({&view, 1}, b.columns);
  return packed;
}
PackedBFloat16 packed_transposed(const Matrix& weight) {
  PackedBFloat16 packed;
  const BFloat16Rows view = weight.view();
  packed.pack_transposed({&view, 1}, weight.columns);
  return packed;
}

std::vector<double> product(const Matrix& a, const Matrix& b) {
  std::vector<double> c(a.rows * b.columns, 0.0);
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t k = 0; k < a.columns; ++k) {
      const double x = a.values[i * a.columns + k];
      const float* row = b.values.data() + k * b.columns;
      for (std::int64_t j = 0; j < b.columns; ++j) c[i * b.columns + j] += x * double(row[j]);
    }
  return c;
}

bool same_bits(const std::vector<float>& x, const float* y) {
  return std::memcmp(x.data(), y, x.size() * sizeof(float)) == 0;
}

/// Every test runs once per kernel set; sets that the machine lacks are skipped.
class BFloat16Gemm : public ::testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    const BFloat16KernelSet& set = bfloat16_kernel_sets()[GetParam()];
    if (set.missing != nullptr) CARNOT_SKIP(Processor, set.missing);
  }
  void TearDown() override { set_num_threads(1); }

  const BFloat16Kernels& kernels() const { return *bfloat16_kernel_sets()[GetParam()].kernels; }

  std::vector<float> multiply(const BFloat16Rows& a, const PackedBFloat16& b) const {
    std::vector<float> c(a.rows * b.columns(), std::numeric_limits<float>::quiet_NaN());
    gemm(kernels(), a, b, {.sums = c.data(), .row_stride = b.columns()});
    return c;
  }
  std::vector<float> multiply(const Matrix& a, const PackedBFloat16& b) const { return multiply(a.view(), b); }
};

INSTANTIATE_TEST_SUITE_P(Sets, BFloat16Gemm, ::testing::Range(std::size_t{0}, bfloat16_kernel_sets().size()),
                         [](const auto& info) {
                           return std::string(bfloat16_kernel_sets()[info.param].kernels->name);
                         });

/// Rows, depth, columns.
constexpr std::int64_t kShapes[][3] = {{1, 1, 1},    {5, 7, 3},       {12, 256, 32},  {13, 257, 33},  {17, 64, 31},
                                       {33, 95, 65}, {273, 300, 130}, {48, 1024, 64}, {35, 2081, 70}, {64, 515, 17}};

TEST_P(BFloat16Gemm, EqualsTheProductInFloat64) {
  for (const auto& [m, k, n] : kShapes) {
    const Matrix a = random_matrix(m, k, 1), b = random_matrix(k, n, 2);
    const std::vector<double> expected = product(a, b);
    const std::vector<float> c = multiply(a, packed(b));
    // Only additions in float32 round: the products are exact.
    for (std::size_t i = 0; i < c.size(); ++i)
      ASSERT_NEAR(c[i], expected[i], 1e-6 * double(k) + 1e-6) << m << "x" << k << "x" << n << " at " << i;
  }
}

TEST_P(BFloat16Gemm, HasTheBitsOfItsOrderOfAdditions) {
  const std::string name = kernels().name;
#if defined(__x86_64__)
  if (name == "avx512_bf16" && !__builtin_cpu_is("intel"))
    CARNOT_SKIP(Processor, "makes other than Intel may add the two products of a pair in another order");
#endif
  const SumOrder order = name == "amx"           ? SumOrder::Tiles
                         : name == "avx512_bf16" ? SumOrder::OddEvenPairs
                                                 : SumOrder::InOrder;
  for (const auto& [m, k, n] : kShapes) {
    const Matrix a = random_matrix(m, k, 3), b = random_matrix(k, n, 4);
    ASSERT_TRUE(
        same_bits(multiply(a, packed(b)), reference::bfloat16_product(a.values, b.values, m, k, n, order).data()))
        << m << "x" << k << "x" << n;
  }
}

TEST_P(BFloat16Gemm, RoundedResultsAreTheSumsRounded) {
  for (const auto& [m, k, n] : kShapes) {
    const Matrix a = random_matrix(m, k, 5), b = random_matrix(k, n, 6);
    const PackedBFloat16 right = packed(b);
    const std::vector<float> sums = multiply(a, right);
    std::vector<BFloat16> c(m * n);
    gemm(kernels(), a.view(), right, {.rounded = c.data(), .row_stride = n});
    for (std::size_t i = 0; i < c.size(); ++i) ASSERT_EQ(c[i].bits, rounded(sums[i]).bits) << i;
  }
}

TEST_P(BFloat16Gemm, NotANumberAndInfinityStayVisible) {
  std::vector<float> ones(64 * 40, 1.0f);
  Matrix a = matrix_of(40, 64, ones);
  const Matrix b = matrix_of(64, 33, std::vector<float>(64 * 33, 1.0f));
  a.numbers[3 * 64 + 9] = rounded(std::numeric_limits<float>::quiet_NaN());
  a.numbers[7 * 64 + 9] = rounded(std::numeric_limits<float>::infinity());
  std::vector<BFloat16> c(40 * 33);
  gemm(kernels(), a.view(), packed(b), {.rounded = c.data(), .row_stride = 33});
  for (int i = 0; i < 40; ++i)
    for (int j = 0; j < 33; ++j) {
      const float got = widened(c[i * 33 + j]);
      EXPECT_EQ(std::isnan(got), i == 3);
      EXPECT_EQ(std::isinf(got), i == 7);
      if (i != 3 && i != 7) {
        EXPECT_EQ(got, 64.0f);
      }
    }
}

TEST_P(BFloat16Gemm, ARowsBitsDoNotDependOnTheOtherRows) {
  const std::int64_t m = 530, n = 70;
  for (std::int64_t k : {300, 1100}) {
    const Matrix a = random_matrix(m, k, 7);
    const PackedBFloat16 right = packed_transposed(random_matrix(n, k, 8));
    const std::vector<float> whole = multiply(a, right);
    for (std::int64_t rows = 1; rows <= 70; rows += rows < 34 ? 1 : 7)
      for (std::int64_t first : {0, 3, 187, 450})
        ASSERT_TRUE(same_bits(multiply(a.view(first, rows), right), whole.data() + first * n))
            << rows << " rows from " << first << ", depth " << k;
  }
}

TEST_P(BFloat16Gemm, OneThreadEqualsTwoAndThreeBitForBit) {
  const Matrix a = random_matrix(500, 600, 9), b = random_matrix(600, 200, 10);
  const std::vector<float> one = multiply(a, packed(b));
  for (int threads : {2, 3}) {
    set_num_threads(threads);
    EXPECT_TRUE(same_bits(one, multiply(a, packed(b)).data())) << threads;
  }
}

TEST_P(BFloat16Gemm, BlockByBlockIsTheProductAndEachBlockIsUsedOnce) {
  const Matrix b = random_matrix(70, 1100, 4);
  const PackedBFloat16 right = packed(b);
  for (const std::int64_t rows : {1, 5, 33, 130, 300}) {
    const Matrix a = random_matrix(rows, 70, 5);
    std::vector<float> whole(static_cast<std::size_t>(rows * 1100)), kept = whole;
    gemm(kernels(), a.view(), right, {.sums = whole.data(), .row_stride = 1100});
    for (const int threads : {1, 3}) {
      for (float* into : {kept.data(), static_cast<float*>(nullptr)}) {
        set_num_threads(threads);
        std::vector<float> used(whole.size());
        std::atomic<std::int64_t> numbers = 0;
        gemm_by_blocks(kernels(), a.view(), right, 512, into, 1100, [&](const ProductBlock& block) {
          EXPECT_EQ(block.column % 512, 0);
          for (std::int64_t i = 0; i < block.rows; ++i)
            std::copy_n(block.sums + i * block.row_stride, block.columns,
                        used.data() + (block.row + i) * 1100 + block.column);
          numbers += block.rows * block.columns;
        });
        EXPECT_EQ(numbers, rows * 1100);
        EXPECT_TRUE(same_bits(whole, used.data())) << rows << " rows";
      }
    }
    EXPECT_TRUE(same_bits(whole, kept.data())) << rows << " rows";
  }
}

TEST_P(BFloat16Gemm, AddsToWhatIsThere) {
  const std::int64_t m = 37, k = 1090, n = 45;
  const Matrix a = random_matrix(m, k, 11), b = random_matrix(k, n, 12);
  const PackedBFloat16 right = packed(b);
  const std::vector<float> sums = multiply(a, right);
  std::vector<float> c(m * n, 3.5f);
  gemm(kernels(), a.view(), right, {.sums = c.data(), .row_stride = n, .accumulate = true});
  for (std::size_t i = 0; i < c.size(); ++i) ASSERT_EQ(c[i], 3.5f + sums[i]);
}

TEST_P(BFloat16Gemm, BiasAndWhatIsThereAreAddedBeforeTheOneRounding) {
  for (const auto& [m, k, n] : kShapes) {
    const Matrix a = random_matrix(m, k, 24), b = random_matrix(k, n, 25);
    const Matrix bias = random_matrix(1, n, 26), there = random_matrix(m, n, 27);
    const PackedBFloat16 right = packed(b);
    const std::vector<float> sums = multiply(a, right);
    std::vector<BFloat16> biased(m * n), added = there.numbers, both = there.numbers;
    gemm(kernels(), a.view(), right, {.rounded = biased.data(), .row_stride = n, .bias = bias.numbers.data()});
    gemm(kernels(), a.view(), right, {.rounded = added.data(), .row_stride = n, .accumulate = true});
    gemm(kernels(), a.view(), right,
         {.rounded = both.data(), .row_stride = n, .accumulate = true, .bias = bias.numbers.data()});
    for (std::int64_t i = 0; i < m * n; ++i) {
      ASSERT_EQ(biased[i], rounded(sums[i] + bias.values[i % n])) << i;
      ASSERT_EQ(added[i], rounded(sums[i] + there.values[i])) << i;
      ASSERT_EQ(both[i], rounded(sums[i] + there.values[i] + bias.values[i % n])) << i;
    }
  }
}

TEST_P(BFloat16Gemm, ReadsAndWritesOnlyItsOwnColumns) {
  // Both operands are parts of wider matrices whose other columns are NaN; so is the result.
  const std::int64_t m = 41, k = 77, n = 51;
  const Matrix a = random_matrix(m, k, 13), b = random_matrix(k, n, 14);
  const auto widen = [](const Matrix& x, std::int64_t width) {
    std::vector<BFloat16> wide(x.rows * width, rounded(std::numeric_limits<float>::quiet_NaN()));
    for (std::int64_t i = 0; i < x.rows; ++i)
      std::copy_n(x.numbers.begin() + i * x.columns, x.columns, wide.begin() + i * width);
    return wide;
  };
  const std::vector<BFloat16> wide_a = widen(a, 85), wide_b = widen(b, 60);
  PackedBFloat16 right;
  const BFloat16Rows b_rows{.data = wide_b.data(), .rows = k, .row_stride = 60};
  right.pack({&b_rows, 1}, n);
  std::vector<float> c(m * 58, -1.0f);
  gemm(kernels(), {.data = wide_a.data(), .rows = m, .row_stride = 85}, right, {.sums = c.data(), .row_stride = 58});
  const std::vector<float> expected = multiply(a, packed(b));
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < 58; ++j) ASSERT_EQ(c[i * 58 + j], j < n ? expected[i * n + j] : -1.0f);
}

TEST_P(BFloat16Gemm, TheThreeProductsOfALinearLayer) {
  const std::int64_t tokens = 45, width = 70, outputs = 99;
  const Matrix x = random_matrix(tokens, width, 15), weight = random_matrix(outputs, width, 16);
  const Matrix dy = random_matrix(tokens, outputs, 17);
  const auto expect_near = [](const std::vector<float>& got, const std::vector<double>& expected) {
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-4) << i;
  };
  expect_near(multiply(x, packed_transposed(weight)), product(x, transposed(weight)));
  expect_near(multiply(dy, packed(weight)), product(dy, weight));
  std::vector<BFloat16> dy_columns(outputs * tokens);
  transpose(dy.numbers.data(), tokens, outputs, outputs, dy_columns.data(), tokens);
  const BFloat16Rows left{.data = dy_columns.data(), .rows = outputs, .row_stride = tokens};
  expect_near(multiply(left, packed(x)), product(transposed(dy), x));
}

TEST_P(BFloat16Gemm, NoRowsAndNoDepth) {
  EXPECT_TRUE(multiply(random_matrix(0, 8, 1), packed(random_matrix(8, 5, 2))).empty());
  EXPECT_EQ(multiply(Matrix{.rows = 2}, packed(Matrix{.columns = 3})), std::vector<float>(6, 0.0f));
}

TEST(PackedBFloat16, SeveralWeightsStandSideBySide) {
  const std::int64_t k = 37;
  const Matrix a = random_matrix(20, k, 18), weight = random_matrix(50, k, 19);
  const BFloat16Rows parts[] = {weight.view(0, 10), weight.view(10, 7), weight.view(17, 33)};
  PackedBFloat16 together;
  together.pack_transposed(parts, k);
  const PackedBFloat16 alone = packed_transposed(weight);
  std::vector<float> c(20 * 50), d(c);
  gemm(a.view(), together, c.data(), 50, false);
  gemm(a.view(), alone, d.data(), 50, false);
  EXPECT_EQ(c, d);
}

TEST(PackedBFloat16, MayBePackedAgainWithAnotherShape) {
  PackedBFloat16 right = packed(random_matrix(90, 80, 20));
  const Matrix a = random_matrix(4, 33, 21), b = random_matrix(33, 50, 22);
  const BFloat16Rows rows = b.view();
  right.pack({&rows, 1}, 50);
  std::vector<BFloat16> c(4 * 50), d(c);
  gemm(a.view(), right, c.data(), 50);
  gemm(a.view(), packed(b), d.data(), 50);
  EXPECT_EQ(c, d);
}

}  // namespace
}  // namespace carnot::kernel
