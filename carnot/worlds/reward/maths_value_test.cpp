#include "carnot/worlds/reward/maths_value.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "carnot/worlds/reward/maths_answer.h"

namespace carnot {
namespace {

TEST(MathsValue, ReadsExpressionsOfNumbers) {
  const std::vector<std::pair<std::string_view, double>> values = {
      {"18", 18},
      {"-3", -3},
      {"--3", 3},
      {"1.5", 1.5},
      {"1.5e3", 1500},
      {"\\frac{1}{4}", 0.25},
      {"1\\frac{1}{2}", 1.5},
      {"-1\\frac{1}{2}", -1.5},
      {"2+3*4", 14},
      {"(2+3)*4", 20},
      {"2^10", 1024},
      {"2^{-1}", 0.5},
      {"2^-1", 0.5},
      {"-2^2", -4},
      {"(-2)^2", 4},
      {"8/4/2", 1},
      {"10-3-2", 5},
      {"\\sqrt{16}", 4},
      {"\\sqrt[3]{27}", 3},
      {"2\\sqrt{9}", 6},
      {"(2)(3)", 6},
      {"\\frac{\\frac{1}{2}}{{4}}", 0.125},
      {"3*10^{2}", 300},
      {"2\\pi", 6.283185307179586},
      {"\\frac{-1}{2}", -0.5},
      {"2\\frac{\\sqrt{4}}{4}", 1},
  };
  for (const auto& [text, value] : values) {
    const auto found = maths_value(text);
    ASSERT_TRUE(found.has_value()) << text;
    EXPECT_NEAR(*found, value, 1e-12) << text;
  }
  for (const std::string_view none :
       {"",    "x",          "2x",        "1/0",   "\\frac{1}{0}", "0/0", "2+",   "(2",   "2)",  "{1",     "\\frac{1}",
        "1,2", "\\sqrt{-1}", "9^9^9^9^9", "1e999", "inf",          "nan", "0x10", "(1)2", "1 2", "\\{1\\}"})
    EXPECT_EQ(maths_value(none), std::nullopt) << none;
}

TEST(MathsValue, GivesUpOnDeepNestsAndLongTexts) {
  const auto nested = [](int depth) { return std::string(depth, '(') + "1" + std::string(depth, ')'); };
  EXPECT_EQ(maths_value(nested(20)), 1);
  EXPECT_EQ(maths_value(nested(400)), std::nullopt);
  EXPECT_EQ(maths_value(nested(100000)), std::nullopt);
  EXPECT_FALSE(maths_equal(nested(100000), "1"));
}

}  // namespace
}  // namespace carnot
