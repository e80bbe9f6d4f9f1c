#include "carnot/worlds/task_rows/task_rows.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "carnot/core/base/random.h"

namespace carnot {
namespace {

TEST(TaskRows, ReadGsm8kAndVerlRowsFromOneFile) {
  const auto rows = parse_task_rows(
      "{\"question\": \"Q\", \"answer\": \"steps\\n#### 1,234 \", \"more\": 1}\n"
      "  \r\n"
      "{\"data_source\": \"lighteval/MATH\", \"prompt\": [{\"role\": \"system\", \"content\": \"S\"}, "
      "{\"role\": \"user\", \"content\": \"U\"}], \"reward_model\": {\"style\": \"rule\", \"ground_truth\": \"x\"}, "
      "\"extra_info\": {\"answer\": \"how\", \"index\": 3}}\n"
      "{\"prompt\": \"P\", \"reward_model\": {\"ground_truth\": \"7\"}}",
      "rows.jsonl");
  ASSERT_TRUE(rows.ok()) << rows.error().message;
  ASSERT_EQ(rows->size(), 3u);
  EXPECT_EQ((*rows)[0].question, "Q");
  EXPECT_EQ((*rows)[0].ground_truth, "1234");
  EXPECT_EQ((*rows)[0].data_source, "openai/gsm8k");
  EXPECT_FALSE((*rows)[0].whole_prompt);
  EXPECT_EQ((*rows)[1].system, "S");
  EXPECT_EQ((*rows)[1].question, "U");
  EXPECT_EQ((*rows)[1].data_source, "lighteval/MATH");
  EXPECT_EQ((*rows)[1].ground_truth, "x");
  EXPECT_EQ((*rows)[1].solution, "how");
  EXPECT_TRUE((*rows)[1].whole_prompt);
  EXPECT_EQ((*rows)[2].question, "P");
}

TEST(TaskRows, ErrorsNameFileLineAndKeyOfEveryBadRow) {
  const auto rows = parse_task_rows(
      "{\"question\": \"Q\", \"answer\": \"no mark\"}\n"
      "[1]\n"
      "{\"question\": 3, \"answer\": \"#### 1\"}\n"
      "{}\n"
      "{\"prompt\": [], \"reward_model\": {\"ground_truth\": 18}}\n"
      "{\"prompt\": [{\"role\": \"assistant\", \"content\": \"\"}]}\n"
      "{\"question\": \"Q\"\n",
      "data/train.jsonl");
  ASSERT_FALSE(rows.ok());
  EXPECT_EQ(
      rows.error().message,
      "data/train.jsonl:1: answer: expected a solution that ends in a line `#### ANSWER`\n"
      "data/train.jsonl:2: expected a JSON object, found array\n"
      "data/train.jsonl:3: question: expected a string, found number\n"
      "data/train.jsonl:4: question: this key is missing; expected GSM8K's question and answer, or verl's prompt "
      "and reward_model\n"
      "data/train.jsonl:5: prompt: expected a user message, or a system and a user message, found 0 messages\n"
      "data/train.jsonl:5: reward_model.ground_truth: expected a string, found number\n"
      "data/train.jsonl:6: prompt[0].role: expected 'user', found 'assistant'\n"
      "data/train.jsonl:6: prompt[0].content: expected a non-empty string\n"
      "data/train.jsonl:6: reward_model: this key is missing\n"
      "data/train.jsonl:7: not JSON at byte 17: parse error at line 1, column 17: syntax error while parsing object - "
      "unexpected end of input; expected '}'");
}

TEST(TaskRows, StopAfterTwentyProblems) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "nonsense\n";
  const auto rows = parse_task_rows(text, "x");
  ASSERT_FALSE(rows.ok());
  EXPECT_EQ(std::ranges::count(rows.error().message, '\n'), 19);
}

TEST(TaskRows, SurviveDamage) {
  const std::string good =
      "{\"data_source\": \"a\", \"prompt\": [{\"role\": \"user\", \"content\": \"U\"}], \"reward_model\": "
      "{\"ground_truth\": \"x\"}, \"extra_info\": {\"answer\": \"#### 3\"}}\n";
  RandomStream random(3);
  for (int i = 0; i < 3000; ++i) {
    std::string text = good;
    for (auto n = 1 + random.below(4); n > 0; --n)
      text[random.below(text.size())] = static_cast<char>(random.below(256));
    const auto rows = parse_task_rows(text.substr(0, 1 + random.below(text.size())), "x.jsonl");
    EXPECT_TRUE(rows.ok() || rows.error().message.starts_with("x.jsonl:")) << rows.error().message;
  }
}

TEST(TaskRows, AFileOrFolderThatIsNotThereIsNamed) {
  EXPECT_NE(read_task_rows("/nowhere/a.jsonl").error().message.find("/nowhere/a.jsonl"), std::string::npos);
  EXPECT_EQ(find_task_file("/nowhere", "train").error().message,
            "/nowhere: holds neither train.jsonl nor train.jsonl.xz");
}

TEST(TaskRows, TheAnswerStandsBehindTheLastMark) {
  EXPECT_EQ(solution_answer("#### 1\n#### 109,200,000\n"), "109200000");
  EXPECT_EQ(solution_answer("no mark"), "");
}

}  // namespace
}  // namespace carnot
