#include "carnot/core/kernel/statistics/selection.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "carnot/core/base/random.h"
#include "reference/clamped_entropy.h"

namespace carnot::kernel {
namespace {

template <class T>
class Selection : public ::testing::Test {
 protected:
  void expect_reference(const std::vector<T>& row, std::int64_t removed) {
    const auto n = static_cast<std::int64_t>(row.size());
    const Cut<T> cut = cut_lowest(row.data(), n, removed);
    const std::vector<double> wide(row.begin(), row.end());
    const auto expected = reference::clamped_entropy(wide, removed);
    for (std::int64_t i = 0; i < n; ++i) {
      const T x = row[i];
      const bool kept = !(x < cut.threshold || (x == cut.threshold && i >= cut.tie_limit));
      ASSERT_EQ(kept, expected.kept[i]) << "entry " << i << " of " << n << ", removed " << removed;
    }
  }
};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Selection, Scalars);

TYPED_TEST(Selection, RemovesExactlyTheLowestEntries) {
  RandomStream random(1);
  for (std::int64_t n : {1, 2, 3, 16, 17, 100, 513, 2000})
    for (int repeat = 0; repeat < 20; ++repeat) {
      const double scale = std::exp(6 * random.normal());
      std::vector<TypeParam> row;
      for (std::int64_t i = 0; i < n; ++i) row.push_back(static_cast<TypeParam>(scale * random.normal()));
      this->expect_reference(row, static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(n))));
    }
}

TYPED_TEST(Selection, OfEqualEntriesTheLargerIndexGoesFirst) {
  RandomStream random(2);
  for (int repeat = 0; repeat < 200; ++repeat) {
    const std::uint64_t n = 1 + random.below(150), values = 1 + random.below(4);
    std::vector<TypeParam> row;
    for (std::uint64_t i = 0; i < n; ++i)
      row.push_back(static_cast<TypeParam>(static_cast<double>(random.below(values)) - 1.5));
    for (std::uint64_t removed = 0; removed < n; removed += 7)
      this->expect_reference(row, static_cast<std::int64_t>(removed));
  }
}

TYPED_TEST(Selection, OrdersExtremeNumbersAndBothZeros) {
  using Limits = std::numeric_limits<TypeParam>;
  const std::vector<TypeParam> row = {0,
                                      TypeParam(-0.0),
                                      Limits::infinity(),
                                      Limits::lowest(),
                                      Limits::denorm_min(),
                                      1,
                                      Limits::max(),
                                      -Limits::infinity(),
                                      TypeParam(-0.0),
                                      0,
                                      Limits::min(),
                                      -Limits::min(),
                                      -Limits::infinity(),
                                      Limits::max(),
                                      -1};
  for (std::size_t removed = 0; removed < row.size(); ++removed) {
    const auto n = static_cast<std::int64_t>(row.size());
    const Cut<TypeParam> cut = cut_lowest(row.data(), n, static_cast<std::int64_t>(removed));
    std::size_t below = 0, at = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      below += row[i] < cut.threshold ? 1 : 0;
      at += row[i] == cut.threshold && i >= cut.tie_limit ? 1 : 0;
    }
    EXPECT_EQ(below + at, removed);
  }
}

TYPED_TEST(Selection, EndsOnRowsThatHoldNoNumbers) {
  const std::vector<TypeParam> row(40, std::numeric_limits<TypeParam>::quiet_NaN());
  const Cut<TypeParam> cut = cut_lowest(row.data(), 40, 12);
  EXPECT_GE(cut.tie_limit, 0);
  EXPECT_LE(cut.tie_limit, 40);
}

}  // namespace
}  // namespace carnot::kernel
