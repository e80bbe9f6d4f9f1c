#include "carnot/core/env/game.h"

#include <gtest/gtest.h>

namespace carnot {
namespace {

std::string real(double value) { return python_number({.value = value}); }
std::string whole(double value) { return python_number({.value = value, .integer = true}); }

TEST(PythonNumber, WritesFloatsAsRepr) {
  EXPECT_EQ(real(-0.1), "-0.1");
  EXPECT_EQ(real(10.9), "10.9");
  EXPECT_EQ(real(1), "1.0");
  EXPECT_EQ(real(0), "0.0");
  EXPECT_EQ(real(-0.0), "-0.0");
  EXPECT_EQ(real(1e15), "1000000000000000.0");
  EXPECT_EQ(real(1e16), "1e+16");
  EXPECT_EQ(real(123456), "123456.0");
  EXPECT_EQ(real(1e-4), "0.0001");
  EXPECT_EQ(real(1e-5), "1e-05");
  EXPECT_EQ(real(1.5e-7), "1.5e-07");
  EXPECT_EQ(real(0.1 + 0.2), "0.30000000000000004");
}

TEST(PythonNumber, WritesIntegersWithoutAPoint) {
  EXPECT_EQ(whole(0), "0");
  EXPECT_EQ(whole(1), "1");
  EXPECT_EQ(whole(-3), "-3");
}

TEST(Reward, AddsAsPythonAdds) {
  const Reward step{.value = -0.1}, win{.value = 10.9}, one{.value = 1, .integer = true};
  const Reward nothing{.value = 0, .integer = true};
  EXPECT_EQ(python_number(nothing + step + step), "-0.2");
  EXPECT_EQ(python_number(nothing + step + step + step), "-0.30000000000000004");
  EXPECT_EQ(python_number(nothing + step + win), "10.8");
  EXPECT_EQ(python_number(nothing + nothing), "0");
  EXPECT_EQ(python_number(nothing + one + one), "2");
  EXPECT_EQ(python_number(one + step), "0.9");
}

}  // namespace
}  // namespace carnot
