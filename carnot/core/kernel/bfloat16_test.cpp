#include "carnot/core/kernel/bfloat16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace carnot::kernel {
namespace {

TEST(BFloat16, EveryNumberSurvivesWideningAndRounding) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const BFloat16 x{static_cast<std::uint16_t>(bits)};
    const float wide = widened(x);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(widened(rounded(wide))));
    } else {
      EXPECT_EQ(rounded(wide), x);
    }
  }
}

TEST(BFloat16, RoundsToTheNearestAndOfTwoToTheEvenOne) {
  for (std::uint32_t bits = 0; bits < 0x7f7f; ++bits) {
    const BFloat16 below{static_cast<std::uint16_t>(bits)}, above{static_cast<std::uint16_t>(bits + 1)};
    for (float sign : {1.0f, -1.0f}) {
      const float low = sign * widened(below), high = sign * widened(above);
      const float middle = low + (high - low) / 2;  // exact: float32 has sixteen more bits
      const BFloat16 even = bits % 2 == 0 ? below : above;
      EXPECT_EQ(widened(rounded(middle)), sign * widened(even));
      EXPECT_EQ(widened(rounded(std::nextafter(middle, low))), low);
      EXPECT_EQ(widened(rounded(std::nextafter(middle, high))), high);
    }
  }
}

TEST(BFloat16, WhatIsTooLargeBecomesInfinite) {
  EXPECT_EQ(widened(rounded(std::numeric_limits<float>::max())), std::numeric_limits<float>::infinity());
  EXPECT_EQ(widened(rounded(-std::numeric_limits<float>::max())), -std::numeric_limits<float>::infinity());
}

}  // namespace
}  // namespace carnot::kernel
