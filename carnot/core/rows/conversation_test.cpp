#include "carnot/core/rows/conversation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace carnot {
namespace {

using ::testing::ElementsAre;

Conversation conversation(const std::string& row) {
  std::vector<std::string> problems;
  auto read = read_conversation(nlohmann::ordered_json::parse(row), "f:1: ", problems);
  EXPECT_THAT(problems, ElementsAre());
  return read.value_or(Conversation());
}

std::vector<std::string> problems_of(const std::string& row) {
  std::vector<std::string> problems;
  EXPECT_FALSE(read_conversation(nlohmann::ordered_json::parse(row), "f:1: ", problems)) << row;
  return problems;
}

TEST(Conversation, OfMessagesLearnsWhatTheAssistantSays) {
  const Conversation got = conversation(
      R"({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "a"},)"
      R"( {"type": "text", "text": "b"}]}, {"role": "assistant", "content": "x", "weight": 0, "tool_calls": null},)"
      R"( {"role": "user", "content": "c"}, {"role": "assistant", "content": "y", "weight": 1}], "id": 7})");
  EXPECT_THAT(got.is_learnt, ElementsAre(false, false, false, false, true));
  EXPECT_EQ(got.messages[1].content, "ab");
  EXPECT_EQ(got.messages[4].content, "y");
  EXPECT_EQ(got.first_learnt(), 4u);
}

TEST(Conversation, OfPromptAndCompletionLearnsTheCompletion) {
  const Conversation texts = conversation(R"({"prompt": "[q]", "completion": "a"})");
  EXPECT_EQ(texts.messages[0].role + texts.messages[0].content, "user[q]");
  EXPECT_EQ(texts.messages[1].role + texts.messages[1].content, "assistanta");
  const Conversation lists =
      conversation(R"({"prompt": [{"role": "user", "content": "p"}, {"role": "assistant", "content": "q"},)"
                   R"( {"role": "user", "content": "r"}], "completion": [{"role": "assistant", "content": "x"},)"
                   R"( {"role": "user", "content": "y"}, {"role": "assistant", "content": "z"}]})");
  EXPECT_THAT(lists.is_learnt, ElementsAre(false, false, false, true, false, true));
}

TEST(Conversation, HasCallsAndToolsInTheFormsInUse) {
  const Conversation got = conversation(
      R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": null, "tool_calls": [)"
      R"({"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"b\": 1, \"a\": 2}"}},)"
      R"( {"name": "g", "arguments": {"z": 1, "y": 2}}]}, {"role": "tool", "tool_call_id": "c1", "content": "r"},)"
      R"( {"role": "assistant", "content": "a"}],)"
      R"( "tools": "[{\"type\": \"function\", \"function\": {\"name\": \"f\"}}, {\"name\": \"g\"}]"})");
  const std::vector<ToolCall> calls = {{.name = "f", .arguments = R"({"b":1,"a":2})", .id = "c1"},
                                       {.name = "g", .arguments = R"({"z":1,"y":2})"}};
  EXPECT_EQ(got.messages[1].tool_calls, calls);
  EXPECT_EQ(got.messages[2].tool_call_id, "c1");
  EXPECT_THAT(got.tools, ElementsAre(R"({"type":"function","function":{"name":"f"}})",
                                     R"({"type":"function","function":{"name":"g"}})"));
}

TEST(Conversation, OfAnotherFormIsRefusedWithAllThatIsWrong) {
  EXPECT_THAT(problems_of(R"({"text": "q", "label": 1})"),
              ElementsAre("f:1: expected messages, or prompt and completion, found text, label"));
  EXPECT_THAT(problems_of(R"({"messages": []})"),
              ElementsAre("f:1: messages: expected a list of messages, found an array of size 0"));
  EXPECT_THAT(
      problems_of(R"({"messages": [3, {"role": "human"}, {"role": "user", "content": 4, "tool_calls": [1]},)"
                  R"( {"role": "assistant", "content": "", "reasoning_content": "hm"},)"
                  R"( {"role": "assistant", "tool_calls": [{"name": "f", "arguments": "[1]"}], "weight": 0.5}],)"
                  R"( "tools": [{"type": "function"}]})"),
      ElementsAre(
          "f:1: messages[0]: expected a message {\"role\", \"content\"}, found 3",
          "f:1: messages[1].role: expected system, user, assistant or tool, found \"human\"",
          "f:1: messages[2].content: expected a string or a list of text parts, found 4",
          "f:1: messages[2].tool_calls: are the user's; expected calls of the assistant alone",
          "f:1: messages[3].reasoning_content: is not read; expected calls in tool_calls, and thinking in content as "
          "the model writes it",
          "f:1: messages[3].tool_calls: is empty, and so is the content; expected one of them",
          "f:1: messages[4].tool_calls[0].arguments: expected a JSON object, or its text, found \"[1]\"",
          "f:1: messages[4].weight: expected 0 or 1, found 0.5",
          "f:1: tools[0]: expected {\"type\": \"function\", \"function\": {\"name\": \"...\", ...}}, found an object "
          "of "
          "size 1"));
}

TEST(Conversation, EndsWithTheAssistantAndBeginsWithAnother) {
  const std::string user = R"({"role": "user", "content": "q"})", said = R"({"role": "assistant", "content": "a"})";
  const auto row = [](const std::string& messages) { return "{\"messages\": [" + messages + "]}"; };
  EXPECT_THAT(problems_of(row(user)), ElementsAre("f:1: no message of the assistant to learn; expected one"));
  EXPECT_THAT(problems_of(row(user + "," + said + "," + user)),
              ElementsAre("f:1: the last message is of the role user; expected one of the assistant, to learn"));
  EXPECT_THAT(problems_of(row(said + "," + user + "," + said)),
              ElementsAre("f:1: begins with the assistant; expected a user's message before the first one to learn"));
}

}  // namespace
}  // namespace carnot
