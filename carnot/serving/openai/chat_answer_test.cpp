#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "carnot/serving/openai/chat_endpoint.h"
#include "carnot/serving/openai/request.h"

namespace carnot {
namespace {

using ::testing::HasSubstr;

TEST(ChatAnswers, HaveTextReasonAndCost) {
  const auto answer = parse_chat_answer(
      R"({"choices": [{"message": {"content": "hi", "tool_calls": null}, "finish_reason": "stop"}, 5],
          "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}})",
      "server");
  EXPECT_EQ(answer->text, "hi");
  EXPECT_EQ(answer->finish_reason, "stop");
  EXPECT_EQ(answer->usage.prompt, 7);
  EXPECT_EQ(answer->usage.completion, 3);
  EXPECT_TRUE(answer->tool_calls.empty());
}

TEST(ChatAnswers, MayCallToolsWithoutAText) {
  const auto answer = parse_chat_answer(
      R"({"choices": [{"message": {"content": null, "tool_calls": [
          {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{\"a\": 1}"}},
          {"function": {"name": "now", "arguments": {"zone": "UTC"}}}, 5]}}], "usage": {"prompt_tokens": -3}})",
      "server");
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer->tool_calls,
            (std::vector<ToolCall>{{"add", R"({"a": 1})", "c1"}, {"now", R"({"zone":"UTC"})", ""}}));
  EXPECT_EQ(answer->text, "");
  EXPECT_EQ(answer->usage.prompt, 0);
}

TEST(ChatAnswers, ThatAreNoneSayWhatWasFound) {
  for (const char* body : {"{}", "[]", R"({"choices": []})", R"({"choices": [{"message": {"content": 5}}]})",
                           R"({"choices": [{"message": {"content": null, "tool_calls": []}}]})"})
    EXPECT_THAT(parse_chat_answer(body, "server").error().message,
                HasSubstr("server: expected a string as choices[0].message.content, found "))
        << body;
  EXPECT_THAT(parse_chat_answer("<html>", "server").error().message, HasSubstr("server"));
}

TEST(ChatRequests, AreReadAsTheyWereMeant) {
  const std::string tool =
      R"({"type":"function","function":{"name":"add","description":"adds","parameters":{"type":"object"}}})";
  const ChatQuestion question{
      .model = "m",
      .messages = {{.role = "system", .content = "be brief"},
                   {.role = "user", .content = "hi \xC3\xA4"},
                   {.role = "assistant", .content = "", .tool_calls = {{"add", R"({"a": 1})", "abc123def"}}},
                   {.role = "tool", .content = "2", .tool_call_id = "abc123def"}},
      .tools = {tool},
      .temperature = 0.5,
      .top_p = 0.9,
      .max_tokens = 17,
      .stop = {"</search>"},
      .seed = 5};
  const ReadRequest read = read_chat_request(chat_request(question));
  ASSERT_TRUE(std::holds_alternative<OpenAiRequest>(read)) << std::get<1>(read)[0].field;
  const auto& request = std::get<OpenAiRequest>(read);
  EXPECT_EQ(request.model, "m");
  ASSERT_EQ(request.messages.size(), 4u);
  EXPECT_EQ(request.messages[1].content, "hi \xC3\xA4");
  EXPECT_EQ(request.messages[2].tool_calls, question.messages[2].tool_calls);
  EXPECT_EQ(request.messages[3].tool_call_id, "abc123def");
  EXPECT_EQ(request.tools.size(), 1u);
  EXPECT_EQ(request.temperature, 0.5);
  EXPECT_EQ(request.top_p, 0.9);
  EXPECT_EQ(request.max_tokens, 17);
  EXPECT_EQ(request.stop, question.stop);
  EXPECT_EQ(request.seed, 5u);
  const std::string changed = chat_request({.model = "m"}, R"({"max_tokens": null, "think": true})");
  EXPECT_THAT(changed, HasSubstr("\"think\":true"));
  EXPECT_THAT(changed, ::testing::Not(HasSubstr("max_tokens")));
}

}  // namespace
}  // namespace carnot
