#include "carnot/worlds/reward/maths_normal_form.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace carnot {
namespace {

struct Form {
  std::string_view answer;
  std::string_view normal;
};

TEST(NormalizeMaths, WritesEqualAnswersEqually) {
  const std::vector<Form> forms = {
      {" 18 ", "18"},
      {"$18$", "18"},
      {"\\$18", "18"},
      {"$18", "18"},
      {"18.00", "18"},
      {"18.", "18"},
      {"1,234", "1234"},
      {"1{,}234", "1234"},
      {"1\\,234", "1234"},
      {"1 234 567", "1234567"},
      {"+5", "5"},
      {"007", "7"},
      {".5", "\\frac{1}{2}"},
      {"0.50", "\\frac{1}{2}"},
      {"-0.0", "0"},
      {"3.140", "3.14"},
      {"50\\%", "50"},
      {"50%", "50"},
      {"90^\\circ", "90"},
      {"90^{\\circ}", "90"},
      {"90\u00b0", "90"},
      {"x = 5", "5"},
      {"\\theta=\\pi", "\\pi"},
      {"abc=5", "abc=5"},
      {"x=y=5", "x=y=5"},
      {"\\frac12", "\\frac{1}{2}"},
      {"\\frac1{72}", "\\frac{1}{72}"},
      {"\\frac{a}2", "\\frac{a}{2}"},
      {"\\dfrac{1}{2}", "\\frac{1}{2}"},
      {"\\tfrac 1 2", "\\frac{1}{2}"},
      {"1/2", "\\frac{1}{2}"},
      {"-3/4", "-\\frac{3}{4}"},
      {"1 1/2", "1\\frac{1}{2}"},
      {"1 \\frac{1}{2}", "1\\frac{1}{2}"},
      {"\\sqrt2", "\\sqrt{2}"},
      {"\\sqrt{2}", "\\sqrt{2}"},
      {"\\sqrt[3]{2}", "\\sqrt[3]{2}"},
      {"18 dollars", "18"},
      {"18\\text{ dollars}", "18"},
      {"5\\ \\mathrm{cm}^2", "5"},
      {"5 cm^2", "5"},
      {"60 miles per hour", "60"},
      {"60 km/h", "60"},
      {"60km", "60"},
      {"12 sq. ft.", "12"},
      {"4 pieces of cake", "4"},
      {"\\text{Monday}", "Monday"},
      {"\\text{(A)}", "(A)"},
      {"\\left( 1, 2 \\right)", "(1,2)"},
      {"\\left\\{1,2\\right\\}", "\\{1,2\\}"},
      {"(1,234)", "(1,234)"},
      {"1, 234", "1,234"},
      {"1 and 2", "1,2"},
      {"2x", "2x"},
      {"2 x", "2x"},
      {"2xy", "2xy"},
      {"2 pi", "2pi"},
      {"2\\pi r", "2\\pi r"},
      {"3\\sqrt{2}", "3\\sqrt{2}"},
      {"\\leftarrow", "\\leftarrow"},
      {"\\(7\\)", "7"},
      {"\\[ 7 \\]", "7"},
      {"\u22127", "-7"},
      {"", ""},
      {"$$", ""},
  };
  for (const auto& [answer, normal] : forms) EXPECT_EQ(normalize_maths(answer), normal) << answer;
}

}  // namespace
}  // namespace carnot
