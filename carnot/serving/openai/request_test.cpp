#include "carnot/serving/openai/request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace carnot {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kHello = R"("messages": [{"role": "user", "content": "Hello"}])";

OpenAiRequest good(const ReadRequest& read) {
  if (const auto* problems = std::get_if<std::vector<FieldProblem>>(&read)) {
    for (const auto& problem : *problems) ADD_FAILURE() << problem.field << ": " << problem.message;
    return {};
  }
  return std::get<OpenAiRequest>(read);
}
OpenAiRequest chat(const std::string& fields) { return good(read_chat_request("{" + kHello + fields + "}")); }
OpenAiRequest completion(const std::string& fields) { return good(read_completion_request("{" + fields + "}")); }

std::vector<FieldProblem> bad(const ReadRequest& read) {
  const auto* problems = std::get_if<std::vector<FieldProblem>>(&read);
  EXPECT_NE(problems, nullptr);
  return problems == nullptr ? std::vector<FieldProblem>{} : *problems;
}

auto problem(const std::string& field, const std::string& message) {
  return Contains(AllOf(Field(&FieldProblem::field, field), Field(&FieldProblem::message, HasSubstr(message))));
}

TEST(ChatRequest, EveryFieldArrives) {
  const OpenAiRequest request = chat(R"(, "model": "m", "n": 3, "temperature": 0.5, "top_p": 0.9, "top_k": 7,
      "max_completion_tokens": 12, "seed": 5, "stop": ["a", "b"], "logprobs": true, "top_logprobs": 4, "stream": true,
      "stream_options": {"include_usage": true}, "return_token_ids": true,
      "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}, "strict": true,
                 "description": null}}], "tool_choice": "auto")");
  EXPECT_TRUE(request.chat);
  EXPECT_EQ(request.model, "m");
  EXPECT_EQ(request.samples, 3);
  EXPECT_EQ(request.temperature, 0.5);
  EXPECT_EQ(request.top_p, 0.9);
  EXPECT_EQ(request.top_k, 7);
  EXPECT_EQ(request.max_tokens, 12);
  EXPECT_EQ(request.seed, 5u);
  EXPECT_THAT(request.stop, ElementsAre("a", "b"));
  EXPECT_EQ(request.likeliest, 4);
  EXPECT_TRUE(request.stream && request.include_usage && request.return_token_ids);
  EXPECT_THAT(request.tools,
              ElementsAre(R"({"type":"function","function":{"name":"f","parameters":{"type":"object"}}})"));
  ASSERT_EQ(request.messages.size(), 1u);
  EXPECT_EQ(request.messages[0].role, "user");
  EXPECT_EQ(request.messages[0].content, "Hello");
}

TEST(ChatRequest, ANullIsAFieldThatIsNotThere) {
  const OpenAiRequest request = chat(R"(, "model": null, "n": null, "temperature": null, "tools": null, "stop": null,
      "logit_bias": null, "stream_options": null, "seed": null, "never heard of": null)");
  EXPECT_EQ(request.samples, 1);
  EXPECT_EQ(request.temperature, std::nullopt);
  EXPECT_EQ(request.likeliest, std::nullopt);
  EXPECT_THAT(request.stop, IsEmpty());
}

TEST(ChatRequest, ValuesThatChangeNothingAreTaken) {
  chat(R"(, "presence_penalty": 0, "frequency_penalty": 0.0, "logit_bias": {}, "response_format": {"type": "text"},
      "modalities": ["text"], "parallel_tool_calls": true, "user": "u", "metadata": {"a": "b"}, "store": true,
      "service_tier": "auto", "functions": [])");
  completion(R"("prompt": "a", "echo": false, "best_of": 1, "suffix": "")");
}

TEST(ChatRequest, MessagesOfAllRolesArrive) {
  const OpenAiRequest request = good(read_chat_request(R"({"messages": [
      {"role": "developer", "content": "S", "name": "boss"},
      {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
      {"role": "assistant", "content": null, "refusal": null, "annotations": [], "tool_calls": [
          {"id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": "{\"b\": 1, \"a\": 2}"}}]},
      {"role": "tool", "tool_call_id": "call_1", "content": "found"}]})"));
  ASSERT_EQ(request.messages.size(), 4u);
  EXPECT_EQ(request.messages[0].role, "system");
  EXPECT_EQ(request.messages[1].content, "ab");
  EXPECT_EQ(request.messages[2].tool_calls,
            (std::vector<ToolCall>{{.name = "look_up", .arguments = R"({"b": 1, "a": 2})", .id = "call_1"}}));
  EXPECT_EQ(request.messages[3].tool_call_id, "call_1");
}

TEST(ChatRequest, NoToolsWhereNoneMayBeCalled) {
  EXPECT_THAT(chat(R"(, "tool_choice": "none", "tools": [{"type": "function", "function": {"name": "f"}}])").tools,
              IsEmpty());
}

TEST(ChatRequest, LogProbabilitiesWithoutNeighbours) { EXPECT_EQ(chat(R"(, "logprobs": true)").likeliest, 0); }

TEST(ChatRequest, AllProblemsAreToldAtOnceWithFieldAndExpectation) {
  const auto problems = bad(read_chat_request(R"({"messages": [{"role": "usr", "content": "x"}, {"role": "user"},
      {"role": "user", "content": [{"type": "image_url", "image_url": {}}]},
      {"role": "user", "content": "x", "tool_call_id": "y"}, {"role": "tool", "content": "x"}, 5,
      {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "no"}}]}],
      "temperatur": 1, "temperature": -1, "top_p": 0, "n": 0, "stop": ["", 5], "seed": 1.5, "stream": 1,
      "top_logprobs": 30, "tool_choice": "required"})"));
  EXPECT_THAT(problems,
              problem("messages[0].role", "expected system, developer, user, assistant or tool, found \"usr\""));
  EXPECT_THAT(problems, problem("messages[1].content", "expected a string or a list of text parts, found null"));
  EXPECT_THAT(problems, problem("messages[2].content[0]", "images and sound are not read"));
  EXPECT_THAT(problems, problem("messages[3].tool_call_id", "there is no field"));
  EXPECT_THAT(problems, problem("messages[4].tool_call_id", "expected the id of a call"));
  EXPECT_THAT(problems, problem("messages[5]", "expected an object"));
  EXPECT_THAT(problems, problem("messages[6].tool_calls[0].function.arguments", "the text of a JSON object"));
  EXPECT_THAT(problems, problem("messages", "the last one is the assistant's"));
  EXPECT_THAT(problems, problem("temperatur", "did you mean 'temperature'?"));
  EXPECT_THAT(problems, problem("temperature", "expected 0 or a number from 0.0001 on, found -1"));
  EXPECT_THAT(problems, problem("top_p", "expected a number above 0, at most 1, found 0"));
  EXPECT_THAT(problems, problem("n", "expected an integer from 1 to 1024, found 0"));
  EXPECT_THAT(problems, problem("stop[0]", "a non-empty string"));
  EXPECT_THAT(problems, problem("stop[1]", "a non-empty string, found 5"));
  EXPECT_THAT(problems, problem("seed", "an integer"));
  EXPECT_THAT(problems, problem("stream", "true or false, found 1"));
  EXPECT_THAT(problems, problem("top_logprobs", "from 0 to 20, found 30"));
  EXPECT_THAT(problems, problem("tool_choice", "a call cannot be forced"));
}

TEST(ChatRequest, FieldsWithAnEffectThatIsNotSupportedAreRefused) {
  const auto problems = bad(read_chat_request("{" + kHello + R"(, "presence_penalty": 0.5, "logit_bias": {"5": 1},
      "response_format": {"type": "json_object"}, "parallel_tool_calls": false, "modalities": ["audio"],
      "functions": [{}], "stream_options": {"include_usage": true, "x": 1}, "max_tokens": 5,
      "max_completion_tokens": 6, "top_logprobs": 1, "temperature": 1e-9,
      "tools": [{"type": "function", "function": {"name": "f", "strict": 1}}, {"type": "web"},
                {"type": "function", "function": {"name": "a b", "parameters": 5}}]})"));
  for (const char* field :
       {"presence_penalty", "logit_bias", "response_format", "parallel_tool_calls", "modalities", "functions"})
    EXPECT_THAT(problems, problem(field, "more is not supported"));
  EXPECT_THAT(problems, problem("stream_options", "needs stream: true"));
  EXPECT_THAT(problems, problem("stream_options.x", "there is no field 'x'"));
  EXPECT_THAT(problems, problem("max_tokens", "given together with another max_completion_tokens"));
  EXPECT_THAT(problems, problem("top_logprobs", "needs logprobs: true"));
  EXPECT_THAT(problems, problem("temperature", "0 or a number from"));
  EXPECT_THAT(problems, problem("tools[0].function.strict", "expected true or false, found 1"));
  EXPECT_THAT(problems, problem("tools[1]", "expected {\"type\": \"function\""));
  EXPECT_THAT(problems, problem("tools[2].function.name", "letters, digits"));
  EXPECT_THAT(problems, problem("tools[2].function.parameters", "a JSON schema"));
}

TEST(ChatRequest, ABodyThatIsNoObjectIsOneProblem) {
  for (const std::string body : {"", "[]", "{", "{\"a\": 1, \"a\": 2}", "5"}) {
    const auto problems = bad(read_chat_request(body));
    ASSERT_EQ(problems.size(), 1u) << body;
    EXPECT_EQ(problems[0].field, "");
  }
  EXPECT_THAT(bad(read_chat_request("{}")), problem("messages", "is missing"));
  EXPECT_THAT(bad(read_chat_request("{\"messages\": []}")), problem("messages", "at least one message"));
}

TEST(ChatRequest, OfAMillionValuesIsRefusedBeforeTheyAreLookedAt) {
  std::string list = "[]";
  for (int i = 0; i < 1'100'000; ++i) list += ",[]";
  EXPECT_THAT(bad(read_chat_request("{\"messages\": [" + list + "]}")),
              ElementsAre(Field(&FieldProblem::message, HasSubstr("has more than 1048576 values"))));
}

TEST(ChatRequest, WithAFieldThatFollowsTwentyProblemsIsRefused) {
  std::string unknown;
  for (int i = 0; i < 30; ++i) unknown += "\"unknown_" + std::to_string(i) + "\": 1, ";
  EXPECT_EQ(bad(read_chat_request("{" + unknown + kHello + "}")).size(), 20u);
}

TEST(CompletionRequest, APromptIsTextsOrTokenIds) {
  EXPECT_THAT(completion(R"("prompt": "a")").prompts, ElementsAre(RequestPrompt("a")));
  EXPECT_THAT(completion(R"("prompt": ["a", "b"])").prompts, ElementsAre(RequestPrompt("a"), RequestPrompt("b")));
  EXPECT_THAT(completion(R"("prompt": [5, 6])").prompts, ElementsAre(RequestPrompt(std::vector<TokenId>{5, 6})));
  EXPECT_THAT(completion(R"("prompt": [[5], [6, 7]])").prompts,
              ElementsAre(RequestPrompt(std::vector<TokenId>{5}), RequestPrompt(std::vector<TokenId>{6, 7})));
  EXPECT_FALSE(completion(R"("prompt": "a")").chat);
  EXPECT_EQ(completion(R"("prompt": "a", "logprobs": 3)").likeliest, 3);
}

TEST(CompletionRequest, PromptsThatAreNoneAreRefused) {
  const auto problems_of = [](const std::string& fields) { return bad(read_completion_request("{" + fields + "}")); };
  EXPECT_THAT(problems_of(""), problem("prompt", "is missing"));
  EXPECT_THAT(problems_of(R"("prompt": "")"), problem("prompt", "is empty"));
  EXPECT_THAT(problems_of(R"("prompt": [])"), problem("prompt", "a list of strings"));
  EXPECT_THAT(problems_of(R"("prompt": {"a": 1})"), problem("prompt", "a list of strings"));
  EXPECT_THAT(problems_of(R"("prompt": ["a", 5])"), problem("prompt[1]", "a string like the first, found 5"));
  EXPECT_THAT(problems_of(R"("prompt": [[5], []])"), problem("prompt[1]", "is empty"));
  EXPECT_THAT(problems_of(R"("prompt": [[5], "a"])"), problem("prompt[1]", "a list of token ids"));
  EXPECT_THAT(problems_of(R"("prompt": [5, -1, 2.5, 99999999])"), problem("prompt[1]", "found -1"));
  EXPECT_THAT(problems_of(R"("prompt": [5, -1, 2.5, 99999999])"), problem("prompt[2]", "found 2.5"));
  EXPECT_THAT(problems_of(R"("prompt": [5, -1, 2.5, 99999999])"), problem("prompt[3]", "found 99999999"));
  EXPECT_THAT(problems_of(R"("prompt": ["a", "b"], "n": 1000)"), problem("n", "at most 1024 texts in all, found 2000"));
  EXPECT_THAT(problems_of(R"("prompt": "a", "messages": [])"), problem("messages", "there is no field"));
  EXPECT_THAT(problems_of(R"("prompt": "a", "echo": true, "best_of": 2)"), problem("echo", "not supported"));
}

}  // namespace
}  // namespace carnot
