#include "carnot/tools/calculator/expression.h"

#include <gtest/gtest.h>

#include <cmath>

#include "carnot/core/base/random.h"

namespace carnot {
namespace {

std::string answer(std::string_view expression) {
  const auto value = calculate(expression);
  return value ? exact_text(*value) : value.error().message;
}

TEST(Calculator, HasPythonsPrecedence) {
  EXPECT_EQ(answer("2 + 3 * 4"), "14");
  EXPECT_EQ(answer("-2 ** 2"), "-4");
  EXPECT_EQ(answer("2 ** -1"), "0.5");
  EXPECT_EQ(answer("2 ^ 3 ** 2"), "512");
  EXPECT_EQ(answer("7 // 2 * 2 + 7 % 2"), "7");
  EXPECT_EQ(answer("-7 // 2"), "-4");
  EXPECT_EQ(answer("-7 % 3"), "2");
  EXPECT_EQ(answer("7 % -3"), "-2");
  EXPECT_EQ(answer("(1 + 2) * (3 - 4) / 6"), "-0.5");
  EXPECT_EQ(answer("8 / 2 / 2 - 1 - 1"), "0");
}

TEST(Calculator, ReadsNumbersNamesAndFunctions) {
  EXPECT_EQ(answer("1_000 * 1.5e3"), "1500000");
  EXPECT_EQ(answer(".5 + 2E-1"), "0.7");
  EXPECT_EQ(answer("sqrt(16) + abs(-3) + floor(2.9) + round(2.5)"), "11");
  EXPECT_EQ(answer("cos(2 * pi) + ln(e)"), "2");
  EXPECT_EQ(answer("2 ** 60"), "1152921504606846976");
}

TEST(Calculator, SaysWhatIsWrong) {
  EXPECT_EQ(answer(""), "expected a number, found the end");
  EXPECT_EQ(answer("2 +* 3"), "expected a number, found \"*\" at character 4");
  EXPECT_EQ(answer("(2 + 3"), "expected ')', found the end");
  EXPECT_EQ(answer("2 3"), "expected an operator or the end, found \"3\" at character 3");
  EXPECT_EQ(answer("1 / (2 - 2)"), "division by zero");
  EXPECT_EQ(answer("5 % 0"), "division by zero");
  EXPECT_EQ(answer("sqrt 2"), "expected '(' after sqrt, found \"2\" at character 6");
  EXPECT_TRUE(answer("import(1)").starts_with("there is no \"import\"; there is: pi, e, abs"));
  EXPECT_EQ(answer("9 ** 999"), "the value is not a finite number");
  EXPECT_EQ(answer("sqrt(-1)"), "the value is not a finite number");
  EXPECT_EQ(answer("1.2.3"), "\"1.2.3\" is no number");
  EXPECT_EQ(answer("1e999"), "\"1e999\" is out of range");
  EXPECT_EQ(answer(std::string(200, '(')), "more than 100 levels");
  EXPECT_EQ(answer(std::string(200, '-') + "1"), "more than 100 levels");
  EXPECT_EQ(answer(std::string(10001, '1')), "the expression is longer than 10000 bytes");
}

/// An expression of integers with its value, built together.
struct Built {
  std::string text;
  double value;
};

Built build(RandomStream& random, int depth) {
  if (depth == 0 || random.chance(0.2)) {
    const auto number = static_cast<double>(random.below(100));
    return {exact_text(number), number};
  }
  const Built left = build(random, depth - 1), right = build(random, depth - 1);
  switch (random.below(4)) {
    case 0: return {"(" + left.text + "+" + right.text + ")", left.value + right.value};
    case 1: return {"(" + left.text + " - " + right.text + ")", left.value - right.value};
    case 2: return {"(" + left.text + ")*(" + right.text + ")", left.value * right.value};
    default: return {"-(" + left.text + ")", -left.value};
  }
}

TEST(Calculator, EqualsTheValueThatAnExpressionWasBuiltWith) {
  RandomStream random(7);
  for (int trial = 0; trial < 500; ++trial) {
    const Built built = build(random, 6);
    const auto value = calculate(built.text);
    ASSERT_TRUE(value.ok()) << built.text;
    ASSERT_EQ(*value, built.value) << built.text;
  }
}

TEST(Calculator, ItsNumbersReadBack) {
  RandomStream random(8);
  for (int trial = 0; trial < 1000; ++trial) {
    const double value = std::ldexp(random.uniform() - 0.5, static_cast<int>(random.below(200)) - 100);
    const std::string text = exact_text(value);
    ASSERT_EQ(calculate(text).value(), value) << text;
  }
}

}  // namespace
}  // namespace carnot
