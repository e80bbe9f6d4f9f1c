#include "carnot/worlds/process/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "carnot/core/base/json.h"

namespace carnot {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

PeerAnswer answer(const std::string& text) {
  return {.value = std::make_shared<const Json>(Json::parse(text)), .where = "world (process 7), line 12"};
}

/// What reading the text as a reply complains of; empty if nothing.
std::string complaint(const std::string& text) {
  try {
    read_reply(answer(text));
  } catch (const PeerFailure& failure) {
    return failure.what();
  }
  return "";
}

TEST(ProcessMessages, AReplyOfNothingIsAnEmptyUserMessage) {
  const Reply reply = read_reply(answer(R"({"id": 3})")).reply;
  EXPECT_EQ(reply.form, ReplyForm::UserMessage);
  EXPECT_EQ(reply.text, "");
  EXPECT_EQ(reply.reward, 0);
  EXPECT_TRUE(reply.valid_action);
  EXPECT_FALSE(reply.done);
  EXPECT_EQ(reply.answer, std::nullopt);
}

TEST(ProcessMessages, EveryFieldOfAReplyArrives) {
  const ProcessReply got = read_reply(answer(
      R"({"id": 3, "text": "won", "reward": 1.5, "penalty": -0.25, "valid_action": false, "done": true,
          "outcome": "out_of_turns", "success": true, "tool": "search", "status": "ok", "measures": {"steps": 4},
          "answer": "42", "anchor": "s7"})"));
  EXPECT_EQ(got.reply.text, "won");
  EXPECT_EQ(got.reply.reward, 1.5);
  EXPECT_EQ(got.reply.penalty, -0.25);
  EXPECT_FALSE(got.reply.valid_action);
  EXPECT_TRUE(got.reply.done);
  EXPECT_EQ(got.reply.outcome, Outcome::OutOfTurns);
  EXPECT_TRUE(got.reply.success);
  EXPECT_EQ(got.reply.tool, "search");
  EXPECT_EQ(got.reply.status, "ok");
  EXPECT_EQ(got.reply.measures, (std::map<std::string, double>{{"steps", 4}}));
  EXPECT_EQ(got.reply.answer, "42");
  EXPECT_EQ(got.anchor, "s7");
}

TEST(ProcessMessages, TheFormOfAReplyFollowsFromWhatItHolds) {
  EXPECT_EQ(read_reply(answer(R"({"text": "found", "inline": true})")).reply.form, ReplyForm::Inline);
  const Reply tools = read_reply(answer(R"({"results": [{"call_id": "a", "text": "4"}, {"text": "5"}]})")).reply;
  EXPECT_EQ(tools.form, ReplyForm::ToolResult);
  EXPECT_EQ(tools.results.at(0).call_id, "a");
  EXPECT_EQ(tools.results.at(1).text, "5");
  const Reply fresh = read_reply(answer(R"({"prompt": {"user": "now", "history": [{"role": "assistant",
      "content": "before", "tool_calls": [{"name": "add", "arguments": {"a": 1}}]}]}})"))
                          .reply;
  EXPECT_EQ(fresh.form, ReplyForm::FreshPrompt);
  EXPECT_EQ(fresh.prompt.user, "now");
  EXPECT_EQ(fresh.prompt.history.at(0).role, "assistant");
  EXPECT_EQ(fresh.prompt.history.at(0).tool_calls.at(0).arguments, R"({"a":1})");
  EXPECT_THAT(complaint(R"({"results": [], "inline": true})"), HasSubstr("only one of inline, results and prompt"));
}

TEST(ProcessMessages, EveryProblemIsToldAtOnceWithItsPlace) {
  EXPECT_EQ(complaint(R"({"id": 3, "reward": "1", "done": 1, "outcome": "won", "score": 2,
                          "measures": {"a": null}, "results": [{"text": 4}, 5]})"),
            "world (process 7), line 12: "
            "results[0].text: expected a string, found 4; "
            "results[1]: expected an object, found 5; "
            "reward: expected a finite number, found \"1\"; "
            "done: expected true or false, found 1; "
            "outcome: expected one of finished, out_of_turns, out_of_tokens, unparsable, tool_failed, found \"won\"; "
            "measures: expected an object of finite numbers, found an object of size 1; "
            "score: no field of this answer");
}

TEST(ProcessMessages, AProcessMayNotCallItsOwnEpisodeAFailureOfTheMachinery) {
  EXPECT_THAT(complaint(R"({"done": true, "outcome": "infra_failed"})"), HasSubstr("outcome: expected one of"));
}

TEST(ProcessMessages, AnOpeningBringsToolsWithTheirSchemas) {
  const ProcessOpening got = read_opening(answer(
      R"({"id": 2, "system": "s", "user": "u", "assistant_prefix": "<think>", "ground_truth": ["4", "four"],
          "info": {"level": "2"}, "anchor": "a", "tools": [{"name": "add", "description": "adds",
          "parameters": {"type": "object", "properties": {"a": {"type": "number"}}}}]})"));
  EXPECT_EQ(got.opening.tools.at(0).name, "add");
  EXPECT_EQ(Json::parse(got.opening.tools.at(0).parameters)["properties"]["a"]["type"], "number");
  EXPECT_EQ(got.ground_truth, (std::vector<std::string>{"4", "four"}));
  EXPECT_EQ(got.info.at("level"), "2");
  EXPECT_EQ(got.anchor, "a");
  EXPECT_THROW(read_opening(answer(R"({"system": "s"})")), PeerFailure) << "nothing to answer";
  EXPECT_THROW(read_opening(answer(R"({"user": "u", "tools": [{"name": "a b"}]})")), PeerFailure);
}

TEST(ProcessMessages, AGreetingOfAnotherProtocolIsRefused) {
  EXPECT_EQ(read_greeting(answer(R"({"protocol": 1, "max_turns": 5, "stop": ["</a>"]})")).protocol.max_turns, 5);
  for (const char* wrong : {R"({"protocol": 2})", R"({"name": "x"})", R"({"protocol": 1, "max_turns": 0})",
                            R"({"protocol": 1, "max_turns": 18446744073709551615})", R"({"protocol": 1.0})",
                            R"({"protocol": 1, "stop": ["</a>", ""]})"})
    EXPECT_THROW(read_greeting(answer(wrong)), PeerFailure) << wrong;
}

TEST(ProcessMessages, ARequestHoldsTheResponseAndItsToolCalls) {
  PolicyResponse response("hello");
  EXPECT_EQ(step_request(4, response), Json::parse(R"({"op": "step", "episode": 4, "text": "hello"})"));
  response.tool_calls = {{.name = "add", .arguments = R"({"a": 1})", .id = "x"}};
  response.problem = "no such tool";
  EXPECT_EQ(step_request(4, response),
            Json::parse(R"({"op": "step", "episode": 4, "text": "hello", "problem": "no such tool",
                            "tool_calls": [{"name": "add", "arguments": {"a": 1}, "id": "x"}]})"));
  EXPECT_EQ(reset_request(4, Split::Validation, 7, 99),
            Json::parse(R"({"op": "reset", "episode": 4, "split": "validation", "task": 7, "seed": 99})"));
}

TEST(ProcessMessages, SettingsAreJsonWhereTheyCanBe) {
  EXPECT_EQ(hello_request({"size=4", "colour=red", "deep={\"a\": [1]}", "empty=", "note=a=b"}).value()["settings"],
            Json::parse(R"({"size": 4, "colour": "red", "deep": {"a": [1]}, "empty": "", "note": "a=b"})"));
  EXPECT_THAT(hello_request({"=4"}).error().message, HasSubstr("env.settings: expected key=value, found \"=4\""));
}

}  // namespace
}  // namespace carnot
