#include "carnot/worlds/reward/scorer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "carnot/core/base/file.h"
#include "carnot/worlds/reward/pattern.h"
#include "testing/paths.h"

namespace carnot {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Scorer> scorer(std::string_view name, const ScorerOptions& options = {}) {
  for (const ScorerEntry& entry : scorers())
    if (entry.name == name) return entry.make(options).value();
  return nullptr;
}

struct Case {
  std::string_view scorer;
  std::string answer;
  std::vector<std::string> golds;
  double score;
};

TEST(Scorers, CompareAnswersEachInItsWay) {
  const std::vector<Case> cases = {
      {"exact_match", "The Eiffel tower.", {"eiffel tower"}, 1},
      {"exact_match", "Eiffel", {"eiffel tower"}, 0},
      {"exact_match", "b", {"c", "b"}, 1},
      {"contains", "It is the Eiffel tower", {"eiffel tower"}, 1},
      {"contains", "Eiffel", {"eiffel tower"}, 0},
      {"f1", "eiffel tower paris", {"eiffel tower"}, 0.8},
      {"number", "1,200.0", {"1200"}, 1},
      {"number", "\\frac{1}{2}", {"0.5"}, 1},
      {"number", "twelve", {"12"}, 0},
      {"number", "12", {"twelve", "12"}, 1},
      {"number", "1e400", {"1e400"}, 0},
      {"maths", "\\dfrac{1}{2}", {"0.5"}, 1},
      {"maths", "x+1", {"1+x"}, 0},
      {"choice", "B", {"B"}, 1},
      {"choice", "b", {"(B)"}, 1},
      {"choice", "The answer is (c) because of A.", {"C"}, 1},
      {"choice", "The answer is D.", {"D"}, 1},
      {"choice", "I think that it is C", {"C"}, 1},
      {"choice", "none", {"A"}, 0},
      {"choice", "Bee", {"B"}, 0},
      {"choice", "", {"B"}, 0},
      {"json", R"({"a": 1})", {}, 1},
      {"json", "{'a': 1}", {}, 0},
  };
  for (const Case& one : cases)
    EXPECT_NEAR(scorer(one.scorer)->score({.response = one.answer, .answer = one.answer, .golds = one.golds}),
                one.score, 1e-12)
        << one.scorer << " of " << one.answer;
}

TEST(Scorers, GiveNothingToAResponseWithoutAnAnswer) {
  const std::vector<std::string> golds{""};
  for (const ScorerEntry& entry : scorers())
    if (entry.needs_gold || entry.name == "json") {
      EXPECT_EQ(scorer(entry.name)->score({.response = "", .answer = std::nullopt, .golds = golds}), 0) << entry.name;
    }
}

TEST(Scorers, AreNumbersFromZeroToOneOfAnyText) {
  const std::vector<std::string> texts = {"",
                                          " ",
                                          "\xff\xfe",
                                          std::string(100000, '('),
                                          "<think>",
                                          "{",
                                          "\\boxed{",
                                          "1/0",
                                          "-1e999",
                                          "NaN",
                                          std::string("\0", 1),
                                          "√",
                                          "<answer></answer>"};
  for (const ScorerEntry& entry : scorers())
    for (const std::string& text : texts)
      for (const std::string& gold : texts) {
        const std::vector<std::string> golds{gold};
        const double score =
            scorer(entry.name, {.pattern = "a+"})->score({.response = text, .answer = text, .golds = golds});
        EXPECT_TRUE(score >= 0 && score <= 1) << entry.name;
      }
}

TEST(Scorers, FormatWantsThinkingAndThenAnAnswerAndNothingElse) {
  const auto format = scorer("format");
  const auto score = [&](std::string_view response) { return format->score({.response = response}); };
  EXPECT_EQ(score("<think>so</think>\n<answer>4</answer>\n"), 1);
  EXPECT_EQ(score("<think></think><answer></answer>"), 1);
  for (const char* wrong : {"", "<answer>4</answer>", "<think>so</think>", "<think>so</think> 4 <answer>4</answer>",
                            "<think>so</think><answer>4</answer> done", "<think><think>so</think><answer>4</answer>",
                            "so <think></think><answer>4</answer>", "<think>so<answer>4</answer></think>"})
    EXPECT_EQ(score(wrong), 0) << wrong;
}

TEST(Scorers, LengthFallsFromTheLimitToTwiceOfIt) {
  const auto length = scorer("length", {.length = 10});
  const auto score = [&](const std::string& response) { return length->score({.response = response}); };
  EXPECT_EQ(score(""), 1);
  EXPECT_EQ(score("0123456789"), 1);
  EXPECT_EQ(score("012345678901234"), 0.5);
  EXPECT_EQ(score(std::string(1000, 'x')), 0);
  EXPECT_EQ(score("√√√√√√√√√√"), 1) << "characters, not bytes";
}

TEST(Scorers, ASchemaSaysWhichJsonFits) {
  const auto json = scorer("json", {.schema = R"({"type": "object", "required": ["x"],
      "properties": {"x": {"type": "integer", "minimum": 2}}})"});
  const auto score = [&](const std::string& answer) { return json->score({.response = answer, .answer = answer}); };
  EXPECT_EQ(score(R"({"x": 2})"), 1);
  EXPECT_EQ(score(R"({"x": 1})"), 0);
  EXPECT_EQ(score(R"({"y": 2})"), 0);
  EXPECT_EQ(score("[2]"), 0);
}

TEST(Scorers, SayWhatIsWrongWithTheirOptions) {
  const auto error = [](std::string_view name, const ScorerOptions& options) {
    for (const ScorerEntry& entry : scorers())
      if (entry.name == name) return entry.make(options).error().message;
    return std::string();
  };
  EXPECT_THAT(error("pattern", {}), HasSubstr("env.pattern: empty"));
  EXPECT_THAT(error("pattern", {.pattern = "(a"}), HasSubstr("env.pattern: '(a', at byte 2: missing closing"));
  EXPECT_THAT(error("json", {.schema = "{"}), HasSubstr("env.schema: not JSON"));
  EXPECT_THAT(error("json", {.schema = R"({"type": 5})"}), HasSubstr("env.schema: not a JSON schema: "));
}

TEST(Scorers, EachHasItsRowInTheManual) {
  const std::string page = read_file(source_path("docs/datasets.md")).value();
  for (const ScorerEntry& entry : scorers())
    EXPECT_THAT(page, HasSubstr("\n| `" + std::string(entry.name) + "` | ")) << entry.name;
}

TEST(Pattern, MatchesAnywhereAndGivesUpInsteadOfGuessing) {
  const Pattern word = Pattern::compile("\\bé+t\\b").value();
  EXPECT_TRUE(word.matches("un éét ici"));
  EXPECT_FALSE(word.matches("\xff"));
  const Pattern endless = Pattern::compile("(a+)+$").value();
  EXPECT_THROW((void)endless.matches(std::string(200, 'a') + "b"), std::runtime_error);
}

TEST(AnswerAt, FindsTheAnswerOfEveryPlace) {
  const std::string response = "so \\boxed{7}, or 8\n#### 1,234 \n <answer>9</answer><answer> ten </answer>\n\n";
  EXPECT_EQ(answer_at(AnswerPlace::Tag, response), "ten");
  EXPECT_EQ(answer_at(AnswerPlace::Boxed, response), "7");
  EXPECT_EQ(answer_at(AnswerPlace::Hashes, response), "1234");
  EXPECT_EQ(answer_at(AnswerPlace::LastNumber, response), "9");
  EXPECT_EQ(answer_at(AnswerPlace::LastLine, response), "<answer>9</answer><answer> ten </answer>");
  EXPECT_EQ(answer_at(AnswerPlace::Whole, " 4\n"), "4");
  EXPECT_EQ(answer_at(AnswerPlace::Tag, "<answer>never closed"), std::nullopt);
  EXPECT_EQ(answer_at(AnswerPlace::Tag, "<final>x</final>", "final"), "x");
}

}  // namespace
}  // namespace carnot
