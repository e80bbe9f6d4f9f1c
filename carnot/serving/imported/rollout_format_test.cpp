#include "carnot/serving/imported/rollout_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace carnot {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ImportedRollouts read(const std::string& text, const std::string& format = "") {
  auto all = parse_rollouts(text, "rows.jsonl", format);
  EXPECT_TRUE(all.ok()) << (all ? "" : all.error().message);
  return all ? std::move(all).value() : ImportedRollouts();
}

std::string refusal(const std::string& text, const std::string& format = "") {
  const auto all = parse_rollouts(text, "rows.jsonl", format);
  return all ? "" : all.error().message;
}

TEST(RolloutFormats, AreRecognizedByTheFieldsOfTheFirstRecord) {
  const auto found = [](const std::string& text) { return std::string(read(text).format->name); };
  EXPECT_EQ(found(R"({"input": "a", "output": "b", "gts": "b", "score": 1, "step": 3})"), "verl");
  EXPECT_EQ(found(R"({"step": 1, "prompt": "a", "completion": "b", "length_reward": 0.5, "advantage": 1})"), "trl");
  EXPECT_EQ(found(R"({"example_id": 1, "prompt": [{"role": "user", "content": "a"}],)"
                  R"( "completion": [{"role": "assistant", "content": "b"}], "reward": 1})"),
            "verifiers");
  EXPECT_EQ(
      found(R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], "reward": 1})"),
      "messages");
  EXPECT_EQ(found(R"({"prompt_ids": [1], "completion_ids": [2], "reward": 1})"), "tokens");
  EXPECT_EQ(
      found(R"({"version": 2, "samples": [{"id": "q", "epoch": 1, "target": "b", "scores": {"match": {"value": "C"}},)"
            R"( "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}]})"),
      "inspect");
}

TEST(RolloutFormats, OfTrlHaveAColumnForEachRewardFunction) {
  const auto all =
      read(R"({"step": 1, "prompt": "a", "completion": "b", "correct": 1, "short": 0.25, "advantage": 9})");
  EXPECT_EQ(all.rollouts[0].score, 1.25);
  EXPECT_EQ(all.rollouts[0].measures, (std::map<std::string, double>{{"correct", 1}, {"short", 0.25}}));
  EXPECT_EQ(all.rollouts[0].step, 1);
}

TEST(RolloutFormats, OfInspectHaveGradesAndCallsAsOpenAiHasThem) {
  const auto all = read(
      R"({"samples": [{"id": 7, "epoch": 2, "target": ["12"], "error": null,
      "scores": {"match": {"value": "I"}, "f1": {"value": 0.5}},
      "messages": [{"role": "user", "content": "3*4?"},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "x", "function": "times", "arguments": {"a": 3}}]},
        {"role": "tool", "content": "12", "tool_call_id": "x", "function": "times"},
        {"role": "assistant", "content": [{"type": "text", "text": "13"}]}]}]})");
  const ImportedRollout& one = all.rollouts.at(0);
  EXPECT_EQ(one.task, "7");
  EXPECT_EQ(one.score, 0);
  EXPECT_EQ(one.measures.at("f1"), 0.5);
  EXPECT_THAT(one.truths, ElementsAre("12"));
  ASSERT_EQ(one.conversation->messages.size(), 4u);
  EXPECT_EQ(one.conversation->messages[1].tool_calls[0].name, "times");
  EXPECT_EQ(one.conversation->messages[3].content, "13");
}

TEST(RolloutFormats, TakeLogProbabilitiesOfOpenAisAnswersAndOfTokens) {
  const auto messages =
      read(R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "logprobs": )"
           R"({"content": [{"token": "b", "logprob": -0.5}, {"token": "", "logprob": -0.25}]}}], "reward": 1})");
  EXPECT_THAT(messages.rollouts[0].log_probs, ElementsAre(ElementsAre(-0.5, -0.25)));
  const auto tokens = read(R"({"prompt_ids": [1, 2], "completion_ids": [3, 4, 5], "completion_mask": [1, 0, 1],)"
                           R"( "completion_logprobs": [-1, 0, -2], "reward": 0})");
  EXPECT_THAT(tokens.rollouts[0].log_probs, ElementsAre(ElementsAre(-1), ElementsAre(-2)));
  EXPECT_THAT(tokens.rollouts[0].sampled, ElementsAre(true, false, true));
}

TEST(RolloutFormats, SayEverythingThatIsWrongWithItsLine) {
  EXPECT_THAT(refusal("{\"input\": 1, \"output\": \"b\", \"score\": \"good\", \"step\": -1}\n"
                      "{\"input\": \"a\", \"output\": \"b\", \"score\": 1}\n"
                      "{\"prompt\": \"a\"}\n"),
              AllOf(HasSubstr("rows.jsonl:1: input: expected a text, found 1"),
                    HasSubstr("rows.jsonl:1: score: expected a number from -1e9 to 1e9, found \"good\""),
                    HasSubstr("rows.jsonl:1: step: expected a step, found -1"),
                    HasSubstr("rows.jsonl:3: expected a record of the format verl")));
  EXPECT_THAT(refusal("{\"a\": 1}"), HasSubstr("expected one of tokens, verl, trl, verifiers, inspect, messages"));
  EXPECT_THAT(refusal("{}", "verlr"), HasSubstr("--format: expected one of tokens, verl"));
  EXPECT_THAT(
      refusal(R"({"prompt_ids": [1.5], "completion_ids": [3], "completion_mask": [1, 1], "reward": 0})"),
      AllOf(HasSubstr("prompt_ids: expected a list of numbers"), HasSubstr("completion_mask: expected an entry")));
}

TEST(RolloutFormats, RefuseLogProbabilitiesThatAreNone) {
  for (const char* bad : {"[-1, null]", "[0.5]", "5", R"({"content": [{"token": "a"}]})"})
    EXPECT_THAT(refusal(R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b",)"
                        R"( "logprobs": )" +
                        std::string(bad) + R"(}], "reward": 1})"),
                HasSubstr("logprobs: expected a list of log-probabilities"))
        << bad;
}

TEST(RolloutFormats, NeverGiveAFailureAReward) {
  const auto limited = [](const std::string& fields) {
    return read(R"({"samples": [{"id": 1, "epoch": 1, "target": "x", "scores": {"match": {"value": "C"}}, )" + fields +
                R"(, "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}]})")
        .rollouts.at(0)
        .outcome;
  };
  EXPECT_EQ(limited(R"("error": {"message": "lost"}, "limit": {"type": "token"})"), Outcome::InfraFailed);
  EXPECT_EQ(limited(R"("limit": {"type": "token"})"), Outcome::OutOfTokens);
  EXPECT_EQ(limited(R"("limit": {"type": "message"})"), Outcome::OutOfTurns);
  const auto early = read(R"({"example_id": 1, "prompt": [{"role": "user", "content": "a"}], "completion": [],)"
                          R"( "reward": 0, "error": "lost"})");
  EXPECT_EQ(early.rollouts.at(0).outcome, Outcome::InfraFailed);
  EXPECT_FALSE(early.rollouts.at(0).conversation.has_value());
  EXPECT_EQ(read(R"({"samples": [{"messages": [1], "epoch": 1, "target": "x", "error": "e"}]})").rollouts.size(), 1u);
}

}  // namespace
}  // namespace carnot
