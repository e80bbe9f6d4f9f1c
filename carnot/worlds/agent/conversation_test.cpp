#include "carnot/worlds/agent/conversation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "carnot/worlds/agent/episode.h"

namespace carnot {
namespace {

using ::testing::HasSubstr;

const std::string kTool =
    R"({"type": "function", "function": {"name": "f", "description": "d", "parameters": {"b": 1, "a": 2}}})";

OpenAiRequest request(const std::string& messages, const std::string& fields = "") {
  const ReadRequest read = read_chat_request("{\"messages\": [" + messages + "]" + fields + "}");
  const auto* request = std::get_if<OpenAiRequest>(&read);
  EXPECT_NE(request, nullptr);
  return request == nullptr ? OpenAiRequest{} : *request;
}

const std::string kHi = R"({"role": "system", "content": "S"}, {"role": "user", "content": "Hi"})";

AnsweredCall answered(const PolicyResponse& response, const std::string& fields = "") {
  return {.request = request(kHi, fields), .answer = answer_message(response, 3)};
}

TEST(AgentConversation, ACallIsAPrompt) {
  const Opening opening = prompt_of(request(kHi, ", \"tools\": [" + kTool + "]"));
  EXPECT_EQ(opening.system, "S");
  ASSERT_EQ(opening.history.size(), 1u);
  EXPECT_EQ(opening.history[0].content, "Hi");
  ASSERT_EQ(opening.tools.size(), 1u);
  EXPECT_EQ(opening.tools[0].name, "f");
  EXPECT_EQ(opening.tools[0].description, "d");
  EXPECT_EQ(opening.tools[0].parameters, R"({"b":1,"a":2})");
}

TEST(AgentConversation, AUserMessageAfterTheAnswerGoesOn) {
  const auto reply =
      continuation(answered("Yes"),
                   request(kHi + R"(, {"role": "assistant", "content": "Yes"}, {"role": "user", "content": "Sure?"})"));
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->form, ReplyForm::UserMessage);
  EXPECT_EQ(reply->text, "Sure?");
}

TEST(AgentConversation, ResultsOfAllCallsInTheirOrderGoOn) {
  PolicyResponse response("...");
  response.tool_calls = {{.name = "f", .arguments = R"({"a": 1, "b": 2})"}, {.name = "g", .id = "own"}};
  const std::string tools = ", \"tools\": [" + kTool + "]";
  const AnsweredCall last = answered(response, tools);
  EXPECT_EQ(last.answer.content, "");
  EXPECT_EQ(last.answer.tool_calls[0].id, "call_3_0");
  EXPECT_EQ(last.answer.tool_calls[1].id, "own");
  const auto further = [&](const std::string& first, const std::string& second, const std::string& offered) {
    return continuation(last, request(kHi + R"(, {"role": "assistant", "content": null, "tool_calls": [
        {"id": "call_3_0", "type": "function", "function": {"name": "f", "arguments": "{\"b\":2,\"a\":1}"}},
        {"id": "own", "type": "function", "function": {"name": "g", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": ")" +
                                          first + R"(", "content": "one"},
        {"role": "tool", "tool_call_id": ")" +
                                          second + R"(", "content": "two"})",
                                      offered));
  };
  const auto reply = further("call_3_0", "own", tools);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->form, ReplyForm::ToolResult);
  ASSERT_EQ(reply->results.size(), 2u);
  EXPECT_EQ(reply->results[0].text, "one");
  EXPECT_EQ(reply->results[1].call_id, "own");
  EXPECT_FALSE(further("own", "call_3_0", tools).has_value());
  EXPECT_FALSE(further("call_3_0", "own", "").has_value()) << "other tools are another prompt";
}

TEST(AgentConversation, AnAnswerComesBackAsItWasTold) {
  const AnsweredCall last = answered("caf\xC3");  // half a character cannot be sent
  const auto reply =
      continuation(last, request(kHi + ", {\"role\": \"assistant\", \"content\": \"caf\xEF\xBF\xBD\"}, " +
                                 R"({"role": "user", "content": "Sure?"})"));
  EXPECT_TRUE(reply.has_value());
}

TEST(AgentConversation, AnythingElseIsAFreshPrompt) {
  const AnsweredCall last = answered("Yes");
  for (const std::string& messages :
       {kHi, kHi + R"(, {"role": "assistant", "content": "No"}, {"role": "user", "content": "Sure?"})",
        std::string(R"({"role": "user", "content": "Other"})"),
        kHi + R"(, {"role": "assistant", "content": "Yes"}, {"role": "user", "content": "a"}, )"
              R"({"role": "user", "content": "b"})",
        std::string(R"({"role": "system", "content": "T"}, {"role": "user", "content": "Hi"},
                       {"role": "assistant", "content": "Yes"}, {"role": "user", "content": "Sure?"})")})
    EXPECT_FALSE(continuation(last, request(messages)).has_value()) << messages;
}

TEST(AgentConversation, CallsThatThePolicyCannotAnswerAreRefused) {
  const Status status = check_call(request(
      R"({"role": "user", "content": "a"}, {"role": "system", "content": "late"}, {"role": "user", "content": "b"})",
      R"(, "n": 2, "logprobs": true, "return_token_ids": true, "stop": "x")"));
  ASSERT_FALSE(status.ok());
  for (const char* field :
       {"n: ", "logprobs: ", "return_token_ids: ", "stop: ", "messages: expected the system message first"})
    EXPECT_THAT(status.error().message, HasSubstr(field));
  EXPECT_FALSE(check_call(request(R"({"role": "system", "content": "alone"})")).ok());
  EXPECT_TRUE(check_call(request(kHi, R"(, "temperature": 0.1, "max_tokens": 5, "seed": 1, "stream": true)")).ok());
}

TEST(AgentReward, IsANumberOrAnObject) {
  EXPECT_EQ(read_reward("0.5", "r").value().reward, 0.5);
  const EpisodeReward reward = read_reward(R"({"reward": 1, "success": false, "measures": {"a": 2}})", "r").value();
  EXPECT_EQ(reward.reward, 1);
  EXPECT_EQ(reward.success, false);
  EXPECT_EQ(reward.measures.at("a"), 2);
  for (const char* bad : {"", "yes", "NaN", "[1]", "{}", "{\"reward\": \"1\"}", "{\"reward\": 1, \"score\": 2}",
                          "{\"reward\": 1, \"measures\": {\"a\": \"b\"}}"})
    EXPECT_FALSE(read_reward(bad, "r").ok()) << bad;
}

}  // namespace
}  // namespace carnot
