#include "carnot/worlds/task_rows/rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace carnot {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<DatasetRow> rows(const std::string& text, const DatasetColumns& columns = {},
                             const std::string& name = "rows.jsonl") {
  auto parsed = parse_dataset(text, name, columns);
  EXPECT_TRUE(parsed.ok()) << (parsed ? "" : parsed.error().message);
  return parsed ? std::move(parsed).value() : std::vector<DatasetRow>(1);
}

std::string problem(const std::string& text, const DatasetColumns& columns = {},
                    const std::string& name = "rows.jsonl") {
  const auto parsed = parse_dataset(text, name, columns);
  return parsed ? "" : parsed.error().message;
}

TEST(DatasetRows, FindsTheUsualColumns) {
  const auto got = rows(R"({"question": "2+2?", "answer": 4}
                           {"question": "3+3?", "answer": ["6", 6.5]})");
  ASSERT_EQ(got.size(), 2);
  EXPECT_EQ(got[0].user, "2+2?");
  EXPECT_THAT(got[0].answers, ElementsAre("4"));
  EXPECT_THAT(got[1].answers, ElementsAre("6", "6.5"));
  const auto maths = rows(R"({"problem": "p", "solution": "s", "level": 3})");
  EXPECT_EQ(maths[0].user, "p");
  EXPECT_THAT(maths[0].answers, ElementsAre("s"));
}

TEST(DatasetRows, ReadsVerlsRowsAsTheyAre) {
  const auto got = rows(
      R"({"data_source": "x", "prompt": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"},)"
      R"( {"role": "assistant", "content": "hello"}, {"role": "user", "content": "2+2?"}],)"
      R"( "reward_model": {"style": "rule", "ground_truth": "4"}})"
      "\n");
  EXPECT_EQ(got[0].system, "be brief");
  ASSERT_EQ(got[0].history.size(), 2);
  EXPECT_EQ(got[0].history[1].content, "hello");
  EXPECT_EQ(got[0].user, "2+2?");
  EXPECT_THAT(got[0].answers, ElementsAre("4"));
}

TEST(DatasetRows, FillsTemplatesAndLeavesOtherBracesAlone) {
  const auto got = rows(R"({"q": "2+2?", "a": "4", "hint": "count", "n": 2})",
                        {.question = "q",
                         .answer = "a",
                         .system = "level {n}",
                         .prompt = "{question} Hint: {hint}. Answer in \\boxed{}, not {x} { {n"});
  EXPECT_EQ(got[0].system, "level 2");
  EXPECT_EQ(got[0].user, "2+2? Hint: count. Answer in \\boxed{}, not {x} { {n");
}

TEST(DatasetRows, SaysEveryProblemWithLineAndColumn) {
  EXPECT_THAT(problem("{\"question\": \"q\", \"answer\": \"a\"}\n\n{\"question\": \"\"}\n"),
              AllOf(HasSubstr("rows.jsonl:3: question: expected a non-empty string"),
                    HasSubstr("rows.jsonl:3: answer: no such column")));
  EXPECT_THAT(problem(R"({"text": "q", "gold": "a"})"),
              AllOf(HasSubstr("env.question: no such column"), HasSubstr("expected one of text, gold")));
  EXPECT_THAT(problem("{\n"), HasSubstr("rows.jsonl:1"));
  EXPECT_THAT(problem(R"({"question": "q", "answer": {"x": 1}})"), HasSubstr("answer: expected a string, a number"));
  EXPECT_THAT(problem(R"({"prompt": [{"role": "user"}], "answer": "a"})"), HasSubstr("prompt[0]: expected a message"));
  EXPECT_THAT(problem(R"({"messages": [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}]})"),
              HasSubstr("messages: ends with the assistant; expected the user's question (sft.source"));
  EXPECT_THAT(problem("\n \n"), HasSubstr("no rows"));
}

TEST(DatasetRows, NeedNoAnswerWhereNoScorerLooksAtOne) {
  EXPECT_THAT(rows(R"({"question": "q"})", {.needs_answer = false})[0].answers, ElementsAre());
}

TEST(DatasetRows, HaveTheColumnThatIsNamedWhoeverLooksAtIt) {
  EXPECT_EQ(problem(R"({"question": "q", "answer": "4"})"
                    "\n"
                    R"({"question": "r", "answer": "5"})",
                    {.answer = "antwort", .needs_answer = false}),
            "rows.jsonl:1: antwort: no such column; env.answer names it, expected one of question, answer");
  EXPECT_EQ(problem(R"({"question": "q", "answer": "4"})"
                    "\n"
                    R"({"question": "r"})",
                    {.needs_answer = false}),
            "rows.jsonl:2: answer: no such column, which other rows have, expected one of question");
}

TEST(DatasetRows, ReadsCsvWithQuotesAndLineBreaks) {
  const auto got = rows("\xEF\xBB\xBFquestion,answer,note\r\n\"a \"\"quoted\"\", b\nc\",4,\r\nd,5,x\r\n",
                        {.prompt = "{question}|{note}"}, "rows.csv");
  ASSERT_EQ(got.size(), 2);
  EXPECT_EQ(got[0].user, "a \"quoted\", b\nc|");
  EXPECT_EQ(got[1].user, "d|x");
  EXPECT_THAT(got[1].answers, ElementsAre("5"));
}

TEST(DatasetRows, ReadsAnArrayOfObjects) {
  const auto got = rows("[\n  {\"question\": \"q\",\n   \"answer\": 1},\n  {\"question\": \"r\", \"answer\": 2}]\n", {},
                        "rows.json");
  ASSERT_EQ(got.size(), 2);
  EXPECT_EQ(got[1].user, "r");
  EXPECT_THAT(problem("[{\"question\": \"q\"}, 3]", {}, "rows.json"),
              AllOf(HasSubstr("rows.json[0]: env.answer: no such column"),
                    HasSubstr("rows.json[1]: expected an object, found number")));
  EXPECT_THAT(problem("[{\"question\": \"\"}]", {.needs_answer = false}, "rows.json"),
              HasSubstr("rows.json[0]: question: expected a non-empty string"));
  EXPECT_THAT(problem("[]", {}, "rows.json"), HasSubstr("no rows"));
}

TEST(DatasetRows, ReadsCsvWithSemicolons) {
  const auto got = rows("question;answer;\"a,b\"\n\"1,5; or 2?\";4;x\n", {.prompt = "{question}|{a,b}"}, "rows.csv");
  ASSERT_EQ(got.size(), 1);
  EXPECT_EQ(got[0].user, "1,5; or 2?|x");
  EXPECT_EQ(rows("question,answer\na;b,4\n", {}, "rows.csv")[0].user, "a;b");
}

}  // namespace
}  // namespace carnot
