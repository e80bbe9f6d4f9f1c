#include "carnot/worlds/reward/maths_answer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "carnot/core/base/file.h"
#include "carnot/core/base/random.h"
#include "carnot/worlds/reward/maths_normal_form.h"
#include "testing/paths.h"
#include "testing/trials.h"

namespace carnot {
namespace {

using testing::trials;

TEST(MarkedAnswer, IsTheNumberBehindTheLastMark) {
  EXPECT_EQ(marked_answer("so\n#### 18"), "18");
  EXPECT_EQ(marked_answer("#### 1 and #### -1,234.50 euros"), "-1234.50");
  EXPECT_EQ(marked_answer("#### 18."), "18.") << "as verl's pattern has it";
  EXPECT_EQ(marked_answer("##### 5"), "5");
  EXPECT_EQ(marked_answer("#### 5 then #### x"), "5");
  EXPECT_EQ(marked_answer("####18"), std::nullopt);
  EXPECT_EQ(marked_answer("#### $18"), std::nullopt);
  EXPECT_EQ(marked_answer("#### -"), std::nullopt);
  EXPECT_EQ(marked_answer("18"), std::nullopt);
  EXPECT_EQ(marked_answer(""), std::nullopt);
}

TEST(MarkedAnswer, LooksAtTheLastThreeHundredCharacters) {
  const std::string answer = "#### 18";
  EXPECT_EQ(marked_answer(answer + std::string(293, 'x')), "18");
  EXPECT_EQ(marked_answer(answer + std::string(294, 'x')), std::nullopt);
  std::string wide;
  for (int i = 0; i < 293; ++i) wide += "\u221a";
  EXPECT_EQ(marked_answer(answer + wide), "18") << "characters, not bytes";
}

TEST(LastNumber, PassesOverWhatIsNoNumber) {
  EXPECT_EQ(last_number("I have 3, no 1,234 apples."), "1234");
  EXPECT_EQ(last_number("It is 18."), "18");
  EXPECT_EQ(last_number("It is -2.5, ..."), "-2.5");
  EXPECT_EQ(last_number("..., -"), std::nullopt);
}

TEST(BoxedOrLastExpression, PrefersTheLastBox) {
  EXPECT_EQ(boxed_or_last_expression("\\boxed{1} \\boxed{\\frac{1}{2}} or 7"), "\\frac{1}{2}");
  EXPECT_EQ(boxed_or_last_expression("\\boxed{\\text{a {b} c}}"), "\\text{a {b} c}");
  EXPECT_EQ(boxed_or_last_expression("\\boxed{1} then \\boxed{2"), "2") << "the last box is not closed";
}

TEST(BoxedOrLastExpression, FallsBackToTheLastExpression) {
  EXPECT_EQ(boxed_or_last_expression("She makes 9 * 2 = $18 every day."), "18");
  EXPECT_EQ(boxed_or_last_expression("It costs $1,234.50."), "1,234.50");
  EXPECT_EQ(boxed_or_last_expression("It falls to -5."), "-5");
  EXPECT_EQ(boxed_or_last_expression("He owes -$5"), "-5");
  EXPECT_EQ(boxed_or_last_expression("16 -3"), "3") << "a difference is no sign";
  EXPECT_EQ(boxed_or_last_expression("a share of 3/4 of it"), "3/4");
  EXPECT_EQ(boxed_or_last_expression("that is $-\\frac{3}{4}$ in all"), "-\\frac{3}{4}");
  EXPECT_EQ(boxed_or_last_expression("a rise of 12.5%!"), "12.5%");
  EXPECT_EQ(boxed_or_last_expression("so \\(x = 2\\sqrt{3}\\)."), "2\\sqrt{3}");
  EXPECT_EQ(boxed_or_last_expression("so \\[x = 2\\] and then 5"), "5");
  EXPECT_EQ(boxed_or_last_expression("no number"), std::nullopt);
  EXPECT_EQ(boxed_or_last_expression(""), std::nullopt);
}

struct Pair {
  std::string_view prediction;
  std::string_view gold;
};

TEST(MathsEqual, TakesTheSameAnswerInOtherWords) {
  const std::vector<Pair> pairs = {
      {"1,234", "1234"},
      {"0.5", "\\frac{1}{2}"},
      {"0.5", "1/2"},
      {"\\dfrac{3}{6}", "0.5"},
      {"-3", "-3.0"},
      {"$18", "18"},
      {"18.00", "18"},
      {"18 dollars", "18"},
      {"\\$18.00", "18"},
      {"18\\text{ cm}", "18"},
      {"50%", "50"},
      {"50\\%", "0.5"},
      {"50%", "\\frac{1}{2}"},
      {"0.333333", "\\frac{1}{3}"},
      {"1 1/2", "1.5"},
      {"1\\frac{1}{2}", "3/2"},
      {"\\frac{\\sqrt{4}}{2}", "1"},
      {"2\\sqrt{3}", "\\sqrt{12}"},
      {"x=7", "7"},
      {"(1, 0.5)", "(1,\\frac{1}{2})"},
      {"\\{1,2\\}", "\\{2,1\\}"},
      {"2, 1", "1, 2"},
      {"1 and 2", "2,1"},
      {"[0, \\infty)", "[0,\\infty)"},
      {"(1,2),(3,4)", "(3,4),(1,2)"},
      {"\\left(1,2\\right]", "(1, 2.0]"},
      {"10^3", "1000"},
      {"1.5 \\times 10^3", "1500"},
      {"\\text{Monday}", "Monday"},
      {"6\\pi", "\\pi \\cdot 6"},
      {"109,200,000", "109200000"},
      {"0.0000005", "5e-7"},
      {"-\\frac{1}{2}", "\\frac{-1}{2}"},
  };
  for (const auto& [prediction, gold] : pairs) {
    EXPECT_TRUE(maths_equal(prediction, gold)) << prediction << " for " << gold;
    EXPECT_TRUE(maths_equal(gold, prediction)) << gold << " for " << prediction;
  }
}

TEST(MathsEqual, TellsOtherAnswersApart) {
  const std::vector<Pair> pairs = {
      {"18", "19"},
      {"-18", "18"},
      {"1.8", "18"},
      {"180", "18"},
      {"1234", "1,2,3,4"},
      {"1, 234", "1234"},
      {"(1,234)", "1234"},
      {"(1,2)", "(2,1)"},
      {"(1,2)", "[1,2]"},
      {"(1,2]", "(1,2)"},
      {"\\{1,2\\}", "(1,2)"},
      {"\\{1,2,2\\}", "\\{1,1,2\\}"},
      {"\\{1,2\\}", "\\{1,2,3\\}"},
      {"0.33", "\\frac{1}{3}"},
      {"0.333", "1/3"},
      {"1000001", "1000000"},
      {"12345678901234567890", "12345678901234567891"},
      {"0.0000001", "0.0000002"},
      {"0.0000001", "0"},
      {"2x", "2"},
      {"2xy", "2"},
      {"x", "y"},
      {"1 1/2", "11/2"},
      {"2 3", "23"},
      {"\\frac{1}{0}", "0"},
      {"", ""},
      {"", "0"},
      {"$$", "$"},
      {"2 pi", "2"},
      {"\\sqrt{2}", "2"},
      {"x^2", "2"},
      {"5%", "0.5"},
      {"Monday", "Sunday"},
      {"18 or 19", "18"},
      {"18, 19", "18"},
      {"\\infty", "0"},
      {"(((((1", "1"},
      {"1/3", "1\\frac{}{3}"},
  };
  for (const auto& [prediction, gold] : pairs) {
    EXPECT_FALSE(maths_equal(prediction, gold)) << prediction << " for " << gold;
    EXPECT_FALSE(maths_equal(gold, prediction)) << gold << " for " << prediction;
  }
}

// Fractions written at random in one of many ways. Which are equal is known before anything is written.
struct Fraction {
  std::int64_t over = 0, under = 1;

  friend bool operator==(const Fraction& a, const Fraction& b) { return a.over * b.under == b.over * a.under; }
};

std::string with_thousands(std::int64_t number) {
  std::string text = std::to_string(number);
  for (auto at = static_cast<std::int64_t>(text.size()) - 3; at > 0; at -= 3) text.insert(at, ",");
  return text;
}

/// Exact, where the denominator divides a power of ten; else "".
std::string decimal(std::int64_t over, std::int64_t under) {
  std::string digits = std::to_string(over / under) + ".";
  std::int64_t rest = over % under;
  for (int i = 0; i < 6 && rest > 0; ++i) {
    digits += std::to_string(rest * 10 / under);
    rest = rest * 10 % under;
  }
  return rest == 0 ? digits + "0" : "";
}

std::string written(const Fraction& fraction, RandomStream& random) {
  const std::int64_t factor = 1 + static_cast<std::int64_t>(random.below(4));
  const std::int64_t over = std::abs(fraction.over) * factor, under = fraction.under * factor;
  const std::string a = std::to_string(over), b = std::to_string(under);
  std::vector<std::string> forms = {a + "/" + b, "\\frac{" + a + "}{" + b + "}", "\\dfrac {" + a + "} {" + b + "}",
                                    "(" + a + ") \\div " + b, "\\frac{" + a + "+" + b + "}{" + b + "} - 1"};
  if (over > under && over % under != 0) {
    const std::string whole = std::to_string(over / under), rest = std::to_string(over % under);
    forms.push_back(whole + " " + rest + "/" + b);
    forms.push_back(whole + "\\frac{" + rest + "}{" + b + "}");
  }
  if (over % under == 0) {
    forms.push_back(with_thousands(over / under));
    forms.push_back(std::to_string(over / under) + ".000");
    forms.push_back("\\sqrt{" + std::to_string((over / under) * (over / under)) + "}");
  }
  if (const std::string text = decimal(over, under); !text.empty()) forms.push_back(text);
  const std::string form = random.pick(forms);
  // A sign in front of a sum would change its first part alone.
  const std::string number = fraction.over >= 0 ? form : form.ends_with("- 1") ? "-(" + form + ")" : "-" + form;
  const std::vector<std::string> frames = {number,
                                           " " + number + " ",
                                           "$" + number + "$",
                                           "x = " + number,
                                           "\\(" + number + "\\).",
                                           number + "\\text{ metres}",
                                           number + " dollars"};
  return random.pick(frames);
}

TEST(MathsEqual, AgreesWithExactFractionsHoweverTheyAreWritten) {
  RandomStream random(5);
  int equal = 0;
  for (int i = 0; i < trials(20000); ++i) {
    const auto draw = [&](std::int64_t most) {
      return Fraction{static_cast<std::int64_t>(random.below(2 * static_cast<std::uint64_t>(most))) - most,
                      1 + static_cast<std::int64_t>(random.below(12))};
    };
    const Fraction a = draw(random.chance(0.2) ? 20000 : 20);
    const Fraction b = random.chance(0.5) ? a : draw(20);
    const std::string first = written(a, random), second = written(b, random);
    equal += a == b ? 1 : 0;
    ASSERT_EQ(maths_equal(first, second), a == b) << first << " and " << second;
    ASSERT_EQ(maths_equal(second, first), a == b) << first << " and " << second;
    ASSERT_TRUE(!(a == b) || canonical_maths(first) == canonical_maths(second)) << first << " and " << second;
  }
  EXPECT_GT(equal, trials(20000) * 9 / 20);
}

TEST(MathsEqual, IsReflexiveAndSymmetricOnAnyBytes) {
  const std::vector<std::string> pieces = {
      "\\frac", "{",          "}",      "(",      ")",   "[",   "]", "\\{",     "\\}", ",",    " ", "1",
      "23",     ".",          "\\sqrt", "^",      "-",   "+",   "*", "/",       "x",   "\\pi", "%", "$",
      "=",      "\\text{cm}", "\xff",   "\\left", "\\,", "and", "e", "dollars", "\\",  "1,000"};
  RandomStream random(8);
  for (int i = 0; i < trials(20000); ++i) {
    std::string a, b;
    for (auto n = random.below(9); n > 0; --n) a += random.pick(pieces);
    for (auto n = random.below(9); n > 0; --n) b += random.pick(pieces);
    EXPECT_EQ(maths_equal(a, b), maths_equal(b, a)) << a << " | " << b;
    EXPECT_EQ(maths_equal(a, a), !normalize_maths(a).empty()) << a;
    boxed_or_last_expression(a + b);
    canonical_maths(a);
  }
}

TEST(CanonicalMaths, GivesVotesForOneNumberOneText) {
  EXPECT_EQ(canonical_maths("1/2"), canonical_maths("0.50"));
  EXPECT_EQ(canonical_maths("$1,234.00"), "1234");
  EXPECT_EQ(canonical_maths("\\frac{1}{3}"), "0.333333");
  EXPECT_EQ(canonical_maths("x+1"), "x+1");
}

// tools/golden/maths_answers.py asked the package math-verify about these pairs.
TEST(MathsEqual, AgreesWithMathVerify) {
  const auto text = read_file(source_path("tests/golden/maths_answers.jsonl"));
  ASSERT_TRUE(text.ok()) << text.error().message;
  const auto lines = split_lines(*text);
  ASSERT_GT(lines.size(), 100u);
  for (const auto line : lines) {
    const auto pair = nlohmann::json::parse(line);
    const auto gold = pair.at("gold").get<std::string>(), response = pair.at("response").get<std::string>();
    const auto answer = boxed_or_last_expression(response);
    EXPECT_EQ(answer && maths_equal(*answer, gold), pair.at("equal").get<bool>())
        << response << " for " << gold << "; found " << answer.value_or("nothing");
  }
}

}  // namespace
}  // namespace carnot
