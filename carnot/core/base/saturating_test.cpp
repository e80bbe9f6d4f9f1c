#include "carnot/core/base/saturating.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace carnot {
namespace {

constexpr Saturating kHighest = Saturating::kHighest, kLowest = Saturating::kLowest;

TEST(Saturating, IsOrdinaryArithmeticIfTheResultFits) {
  for (const std::int64_t a : {-7, 0, 3, 1'000'000'000})
    for (const std::int64_t b : {-2, 5, 1'000'000'000}) {
      EXPECT_EQ((Saturating(a) + b).value(), a + b);
      EXPECT_EQ((Saturating(a) - b).value(), a - b);
      EXPECT_EQ((Saturating(a) * b).value(), a * b);
      EXPECT_EQ(Saturating(a) < Saturating(b), a < b);
    }
}

TEST(Saturating, StopsAtTheEnds) {
  EXPECT_EQ(kHighest + 1, kHighest);
  EXPECT_EQ(kHighest - (-1), kHighest);
  EXPECT_EQ(kHighest * 2, kHighest);
  EXPECT_EQ(kLowest * -1, kHighest);
  EXPECT_EQ(kLowest + (-1), kLowest);
  EXPECT_EQ(kLowest - 1, kLowest);
  EXPECT_EQ(kHighest * -2, kLowest);
  EXPECT_EQ(Saturating(0) - kLowest, kHighest);
}

}  // namespace
}  // namespace carnot
