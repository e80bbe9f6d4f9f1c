#include "carnot/serving/openai/answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "carnot/core/base/json.h"

namespace carnot {
namespace {

const AnswerHead kHead{.id = "chatcmpl-1", .model = "m", .created = 7};

Json parsed(const std::string& text) { return parse_json(text, "answer").value(); }

Json event(const std::string& text) {
  EXPECT_TRUE(text.starts_with("data: ") && text.ends_with("\n\n")) << text;
  return parsed(text.substr(6));
}

AnsweredChoice choice_with_tokens() {
  return {.index = 1,
          .text = "Hi \xC3",
          .finish_reason = "stop",
          .tokens = {{.id = 5, .drawn = {"Hi", -0.5}, .likeliest = {{"Hi", -0.5}, {"Ho", -1.5}}},
                     {.id = 6, .drawn = {" \xC3", -2}, .likeliest = {{"x", -0.25}, {" \xC3", -2}}}}};
}

TEST(OpenAiAnswer, AChatIsAMessageWithUsage) {
  const AnsweredChoice choice{.text = "Hi", .finish_reason = "stop"};
  EXPECT_EQ(parsed(whole_answer({}, kHead, {&choice, 1}, {.prompt = 4, .completion = 2}, {})), parsed(R"({
    "id": "chatcmpl-1", "object": "chat.completion", "created": 7, "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "logprobs": null,
                 "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 4, "completion_tokens": 2, "total_tokens": 6}})"));
}

TEST(OpenAiAnswer, CallsStandBesideTheText) {
  const AnsweredChoice choice{.tool_calls = {{.name = "f", .arguments = "{\"a\": 1}", .id = "c"}},
                              .finish_reason = "tool_calls"};
  EXPECT_EQ(parsed(whole_answer({}, kHead, {&choice, 1}, {}, {}))["choices"][0]["message"],
            parsed(R"({"role": "assistant", "content": null, "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}}]})"));
  EXPECT_EQ(event(choice_event({}, kHead, choice))["choices"][0]["delta"],
            parsed(R"({"tool_calls": [{"index": 0, "id": "c", "type": "function",
                                       "function": {"name": "f", "arguments": "{\"a\": 1}"}}]})"));
}

TEST(OpenAiAnswer, LogProbabilitiesAndIdsOfAChat) {
  const std::vector<TokenId> prompt{1, 2};
  const Json answer = parsed(whole_answer({.likeliest = 2, .return_token_ids = true}, kHead,
                                          std::vector<AnsweredChoice>{choice_with_tokens()}, {}, prompt));
  EXPECT_EQ(answer["prompt_token_ids"], Json({1, 2}));
  const Json& choice = answer["choices"][0];
  EXPECT_EQ(choice["token_ids"], Json({5, 6}));
  EXPECT_EQ(choice["message"]["content"], "Hi \xEF\xBF\xBD");
  const Json& second = choice["logprobs"]["content"][1];
  EXPECT_EQ(second["bytes"], Json({32, 0xC3}));
  EXPECT_EQ(second["token"], " \xEF\xBF\xBD");
  EXPECT_EQ(second["logprob"], -2);
  EXPECT_EQ(second["top_logprobs"][0], parsed(R"({"token": "x", "logprob": -0.25, "bytes": [120]})"));
}

TEST(OpenAiAnswer, LogProbabilitiesOfACompletion) {
  AnsweredChoice choice = choice_with_tokens();
  choice.text_offset = 3;
  choice.prompt = {9};
  const Json answer = parsed(whole_answer({.chat = false, .likeliest = 2, .return_token_ids = true}, kHead,
                                          std::vector<AnsweredChoice>{choice}, {}, {}));
  EXPECT_EQ(answer["object"], "text_completion");
  EXPECT_EQ(answer["choices"][0]["prompt_token_ids"], Json({9}));
  EXPECT_EQ(
      answer["choices"][0]["logprobs"],
      parsed("{\"tokens\": [\"Hi\", \" \xEF\xBF\xBD\"], \"token_logprobs\": [-0.5, -2.0], \"text_offset\": [3, 5],"
             "\"top_logprobs\": [{\"Hi\": -0.5, \"Ho\": -1.5}, {\"x\": -0.25, \" \xEF\xBF\xBD\": -2.0}]}"));
}

TEST(OpenAiAnswer, AStreamOpensGoesOnAndEnds) {
  const OpenAiRequest request{.stream = true, .include_usage = true, .return_token_ids = true};
  const std::vector<TokenId> prompt{1};
  const Json opening = event(opening_event(request, kHead, 2, prompt));
  EXPECT_EQ(opening["object"], "chat.completion.chunk");
  EXPECT_EQ(opening["prompt_token_ids"], Json({1}));
  EXPECT_EQ(opening["choices"][0]["delta"], parsed(R"({"role": "assistant", "content": ""})"));
  EXPECT_TRUE(opening["usage"].is_null());
  const Json piece = event(choice_event(request, kHead, {.index = 2, .text = "a", .tokens = {{.id = 5}}}));
  EXPECT_EQ(
      piece["choices"][0],
      parsed(R"({"index": 2, "delta": {"content": "a"}, "logprobs": null, "finish_reason": null, "token_ids": [5]})"));
  const Json last = event(choice_event(request, kHead, {.index = 2, .finish_reason = "length"}));
  EXPECT_EQ(last["choices"][0]["delta"], Json::object());
  EXPECT_EQ(last["choices"][0]["finish_reason"], "length");
  const Json usage = event(usage_event(request, kHead, {.prompt = 1, .completion = 1}));
  EXPECT_EQ(usage["choices"], Json::array());
  EXPECT_EQ(usage["usage"]["total_tokens"], 2);
}

TEST(OpenAiAnswer, ErrorsNameTheFirstFieldAndTellAll) {
  const std::vector<FieldProblem> problems{{"n", "expected 1"}, {"", "and more"}};
  EXPECT_EQ(parsed(error_answer(problems)), parsed(R"({"error": {"message": "n: expected 1\nand more",
      "type": "invalid_request_error", "param": "n", "code": null}})"));
  EXPECT_EQ(parsed(error_answer(503, "full"))["error"]["type"], "server_error");
  EXPECT_EQ(parsed(error_answer(401, "no"))["error"]["code"], "invalid_api_key");
}

TEST(OpenAiAnswer, ModelsAreAList) {
  const Json models = parsed(models_answer("m", 7, 512));
  EXPECT_EQ(models["data"][0], parsed(model_answer("m", 7, 512)));
  EXPECT_EQ(models["data"][0]["id"], "m");
}

}  // namespace
}  // namespace carnot
