#include "carnot/core/base/fields.h"

#include <gtest/gtest.h>

namespace carnot {
namespace {

TEST(Limits, SayWhatTheyExpected) {
  EXPECT_EQ(violation(at_least(1), 0), "a number at least 1");
  EXPECT_EQ(violation(above(0), 0), "a number above 0");
  EXPECT_EQ(violation(between(0, 1), 2), "a number at least 0 and at most 1");
  EXPECT_EQ(violation(one_of({"cpu", "cuda"}), "gpu"), "one of cpu | cuda");
}

TEST(Limits, AcceptTheirOwnBounds) {
  EXPECT_EQ(violation(at_least(1), 1), "");
  EXPECT_EQ(violation(between(0, 1), 1), "");
  EXPECT_EQ(violation(Limits{}, -1e300), "");
  EXPECT_EQ(violation(one_of({"cpu", "cuda"}), "cuda"), "");
}

TEST(Limits, RefuseWhatIsNotAFiniteNumber) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_NE(violation(at_least(1), std::numeric_limits<double>::quiet_NaN()), "");
  EXPECT_EQ(violation(above(0), kInfinity), "a finite number above 0");
  EXPECT_EQ(violation(Limits{}, -kInfinity), "a finite number");
}

TEST(Limits, RefuseACountThatSumsWouldOverflow) {
  EXPECT_EQ(violation(count_from(0), 2147483647), "a number at least 0 and at most 1000000000");
  EXPECT_EQ(violation(between(0, 256), 2e9), "a number at least 0 and at most 256");
  EXPECT_EQ(violation(count_from(1), 0), "a number at least 1");
  EXPECT_EQ(describe(count_from(1)), "at least 1");
}

}  // namespace
}  // namespace carnot
