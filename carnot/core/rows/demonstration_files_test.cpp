// Rows as demonstrations, against what transformers makes of whole conversations (tools/golden/conversation_masks.py).
#include "carnot/core/rows/demonstration_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "carnot/core/data/rollout_file.h"
#include "carnot/core/text/chat_families.h"
#include "testing/chat_templates.h"
#include "testing/conversations.h"
#include "testing/qwen2_tokenizer.h"
#include "testing/small_tokenizer.h"

namespace carnot {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::small_tokenizer;

constexpr int kLongest = 4096;

const Tokenizer& qwen() {
  static const Tokenizer tokenizer = Tokenizer::load(testing::small_qwen2_folder()).value();
  return tokenizer;
}

const ChatFamily& chat_ml() {
  static const auto chat = make_chat_family("chatml", small_tokenizer()).value();
  return *chat;
}

std::string error_of(const std::string& text, const ChatFamily& chat = chat_ml()) {
  const auto tasks = parse_demonstrations(text, "rows.jsonl", chat, kLongest);
  return tasks ? "" : tasks.error().message;
}

std::string row(const std::string& question, const std::string& answer) {
  return nlohmann::json{{"prompt", question}, {"completion", answer}}.dump() + "\n";
}

TEST(Demonstrations, HaveTheTokensAndTheMaskThatTransformersMakesOfTheWholeConversation) {
  testing::use_source_python();
  for (const std::string name : {"qwen2.5", "qwen3"}) {
    testing::expect_recorded_masks(*make_chat_family(name, qwen()).value(), name);
    const auto by_template = TemplateChat::start(testing::template_of(testing::template_text(name)), qwen());
    ASSERT_TRUE(by_template.ok()) << by_template.error().message;
    testing::expect_recorded_masks(**by_template, name);
  }
}

TEST(Demonstrations, TakeContentsStrippedWhereTheFormatStripsThem) {
  testing::use_source_python();
  const auto chat = testing::golden_template_chat("llama3");
  const auto exact = parse_demonstrations(row("q", "north"), "f", *chat, kLongest);
  const auto blanks = parse_demonstrations(row("q", " north\n"), "f", *chat, kLongest);
  ASSERT_TRUE(exact.ok() && blanks.ok());
  EXPECT_EQ((*blanks)[0][0].tokens, (*exact)[0][0].tokens);
}

TEST(Demonstrations, SayAllThatIsWrongWithTheRowsOfAFile) {
  EXPECT_THAT(error_of(row("q", "a") + "{\"messages\": 3}\nno JSON\n" + row("q", "a") + "{\"text\": \"t\"}\n"),
              AllOf(::testing::StartsWith("rows.jsonl:2: messages: expected a list of messages, found 3\n"
                                          "rows.jsonl:3: not JSON at byte 2: "),
                    ::testing::EndsWith("\nrows.jsonl:5: expected messages, or prompt and completion, found text")));
  testing::use_source_python();
  EXPECT_THAT(error_of(R"({"prompt": "q", "completion": "a", "tools": [{"name": "f"}]})",
                       *testing::golden_template_chat("turns")),
              HasSubstr("rows.jsonl:1: chat format template has no way to offer tools"));
}

TEST(Demonstrations, OfATemplateThatRewritesHistoryAreRefused) {
  testing::use_source_python();
  const auto chat = TemplateChat::start(testing::template_of(testing::template_text("qwen3")), qwen()).value();
  const std::string thought = R"({"role": "assistant", "content": "<think>\nhm\n</think>\n\nUp."})";
  const std::string ask = R"({"role": "user", "content": "Which way?"})";
  EXPECT_EQ(error_of("{\"messages\": [" + ask + "," + thought + "]}", *chat), "");
  EXPECT_THAT(error_of("{\"messages\": [" + ask + "," + thought + "," + ask + "," + thought + "]}", *chat),
              AllOf(HasSubstr("rows.jsonl:1: the chat format writes the conversation turn by turn in another way than"),
                    HasSubstr("turn by turn '<think>\nhm"), HasSubstr("drops the thinking of earlier"),
                    HasSubstr("; expected messages of which it changes none")));
}

TEST(Demonstrations, OfCsvHaveMessagesAsJson) {
  const auto csv = parse_demonstrations(
      "messages,prompt,completion,tools\n\"[{\"\"role\"\": \"\"user\"\", \"\"content\"\": \"\"q\"\"}, {\"\"role\"\": "
      "\"\"assistant\"\", \"\"content\"\": \"\"a\"\"}]\",,,\n,q,a,\n",
      "rows.csv", chat_ml(), kLongest);
  ASSERT_TRUE(csv.ok()) << csv.error().message;
  EXPECT_EQ((*csv)[0][0].tokens, (*csv)[1][0].tokens);
}

TEST(Demonstrations, ThatAreTooLongAreLeftOut) {
  const auto tasks =
      parse_demonstrations(row("q", "a") + row("q", std::string(200, 'a')) + row("q", "b"), "f", chat_ml(), 60);
  ASSERT_TRUE(tasks.ok());
  EXPECT_EQ(tasks->size(), 2u);
}

/// Rollout rows of one group: a trajectory for each of these answers, which succeeded where it says so.
std::string rollout_of(const ChatFamily& chat, const std::vector<std::pair<std::string, bool>>& answers) {
  Group group{.uid = "t", .trees = std::vector<Tree>(answers.size())};
  const std::vector<Message> question = {{.role = "user", .content = "left?"}};
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const auto& [answer, success] = answers[i];
    SpannedTokens turn = chat.render_opening(question, "");
    const int begin = static_cast<int>(turn.tokens.size());
    std::vector<TokenId> said = chat.spoken(answer, "", true);
    said.push_back(chat.stop_tokens()[0]);
    turn.tokens.insert(turn.tokens.end(), said.begin(), said.end());
    extend_spans(turn.spans, SpanKind::Think, static_cast<int>(said.size()));
    const int end = static_cast<int>(turn.tokens.size());
    group.trees[i].turns = {{.tokens = turn.tokens, .sampled_begin = begin, .sampled_end = end, .spans = turn.spans}};
    group.trees[i].leaves = {
        {.turn = 0, .sibling = static_cast<int>(i), .trajectory_id = "t." + std::to_string(i), .success = success}};
  }
  return rollout_rows(std::vector<Group>{group}, {},
                      [&chat](std::span<const TokenId> tokens) { return chat.tokenizer().decode(tokens); });
}

TEST(Demonstrations, OfARolloutAreThoseThatSucceededWithTheTokensOfTheSameMessages) {
  const std::string rollout = rollout_of(chat_ml(), {{"heard", true}, {"brief", false}, {"left", true}});
  const auto tasks = parse_demonstrations(rollout, "step_0.jsonl", chat_ml(), kLongest);
  ASSERT_TRUE(tasks.ok()) << tasks.error().message;
  ASSERT_EQ(tasks->size(), 1u) << "one task";
  ASSERT_EQ((*tasks)[0].size(), 2u);
  const auto rows = parse_demonstrations(row("left?", "heard") + row("left?", "left"), "f", chat_ml(), kLongest);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ((*tasks)[0][i].tokens, (*rows)[i][0].tokens);
    EXPECT_EQ((*tasks)[0][i].is_said, (*rows)[i][0].is_said);
  }
}

TEST(Demonstrations, OfARolloutWithAnotherTokenizerAreRefused) {
  const auto other = make_chat_family("chatml", qwen()).value();
  EXPECT_THAT(error_of(rollout_of(*other, {{"heard", true}})),
              AllOf(HasSubstr("rows.jsonl:1: "), HasSubstr("; expected a trajectory of a model with this tokenizer")));
}

TEST(Demonstrations, OfATrajectoryWithFreshPromptsAreItsContexts) {
  const Turn turn{.tokens = {1, 2, 3}, .sampled_begin = 1, .sampled_end = 3};
  Group group{.trees = {{.turns = {turn, turn, turn}, .leaves = {{.turn = 2}}}}};
  Tree& tree = group.trees[0];
  tree.turns[1].parent = 0;
  tree.turns[2].parent = 1;
  tree.turns[2].context = Context::Fresh;
  const auto got = demonstrations_of(trajectory(group, 0, 0, 0));
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].tokens, (std::vector<TokenId>{1, 2, 3, 1, 2, 3}));
  EXPECT_EQ(got[1].is_said, (std::vector<bool>{false, true, true}));
}

class DemonstrationFolder : public ::testing::Test {
 protected:
  DemonstrationFolder() { std::filesystem::create_directories(folder_); }
  ~DemonstrationFolder() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) const {
    EXPECT_TRUE(write_file_atomically(folder_ / name, text).ok());
    return (folder_ / name).string();
  }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("carnot_demonstrations_" + std::to_string(::getpid()));
};

TEST_F(DemonstrationFolder, FilesAreSplitBySeedAndNothingIsLost) {
  std::string a, b;
  for (int i = 0; i < 10; ++i) (i < 4 ? a : b) += row("q", "answer " + std::to_string(i));
  DemonstrationFiles files{.paths = {write("a.jsonl", a), write("b.jsonl", b)}, .held_out_share = 0.25, .seed = 1};
  const auto texts = [&] {
    const SplitDemonstrations split = read_demonstrations(files, chat_ml()).value();
    std::vector<std::string> all;
    for (const auto* part : {&split.train, &split.held_out})
      for (const Demonstration& one : *part) all.push_back(small_tokenizer().decode(one.tokens));
    EXPECT_EQ(split.held_out.size(), 3u);
    return all;
  };
  const auto first = texts();
  EXPECT_EQ(texts(), first);
  files.seed = 2;
  const auto second = texts();
  EXPECT_NE(second, first);
  EXPECT_THAT(second, ::testing::UnorderedElementsAreArray(first));
}

TEST_F(DemonstrationFolder, ProblemsOfAllFilesAreSaid) {
  const std::vector<std::string> paths = {write("a.jsonl", "{}"), "/nowhere/b.jsonl", write("c.csv", "text\nx\n")};
  EXPECT_THAT(read_demonstrations({.paths = paths}, chat_ml()).error().message,
              AllOf(HasSubstr("a.jsonl:1: expected messages, or prompt and completion, found no columns"),
                    HasSubstr("/nowhere/b.jsonl: "), HasSubstr("c.csv, record 1: expected messages")));
  const std::string failed = write("d.jsonl", rollout_of(chat_ml(), {{"heard", false}}));
  EXPECT_THAT(read_demonstrations({.paths = {failed}}, chat_ml()).error().message,
              AllOf(HasSubstr("no demonstration is left"), HasSubstr("of trajectories one that succeeded")));
}

}  // namespace
}  // namespace carnot
