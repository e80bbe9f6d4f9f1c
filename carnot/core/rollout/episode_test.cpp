#include "carnot/core/rollout/episode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/scripted_rollout.h"

namespace carnot {
namespace {

using namespace carnot::testing;  // NOLINT: the builders of this test

Episode episode_of(const ScriptedOptions& options, const EpisodeOptions& limits = {}) {
  OpenedEnvironment opened = open_environment(std::make_shared<ScriptedEnvironment>(options, 1));
  SpannedTokens opening = render_prompt(small_chat(), opened.opening).value();
  return Episode(std::move(opened), std::move(opening), small_chat(), limits);
}

std::vector<TokenId> tokens_of(const std::string& text, bool closed) {
  std::vector<TokenId> tokens = small_tokenizer().encode(text);
  if (closed) tokens.push_back(small_chat().stop_tokens()[0]);
  return tokens;
}

std::vector<std::string> span_texts(const Turn& turn) {
  std::vector<std::string> texts;
  for (const Span& span : turn.spans)
    texts.push_back(std::string(name_of(span.kind)) + ": " +
                    small_tokenizer().decode(std::span(turn.tokens).subspan(span.begin, span.end - span.begin)));
  return texts;
}

TEST(Episode, ATurnIsOpeningResponseAndObservationWithTheirSpans) {
  Episode episode = episode_of({});
  const auto sampled = tokens_of("left</think><answer>Up</answer>", true);
  EXPECT_EQ(episode.response(sampled).text, "<think>left</think><answer>Up</answer>");
  Answer answer = ask(*episode.environment(), episode.response(sampled));
  answer.reply.text = "wall";
  const Turn turn = episode.close_turn(sampled, answer, episode.render_reply(sampled, answer.reply).value());
  EXPECT_THAT(span_texts(turn),
              ::testing::ElementsAre("template: <|im_start|>system\n", "prompt: be brief",
                                     "template: <|im_end|>\n<|im_start|>user\n", "prompt: task 1",
                                     "template: <|im_end|>\n<|im_start|>assistant\n", "prompt: <think>",
                                     "think: left</think><answer>", "action: Up", "think: </answer><|im_end|>",
                                     "template: \n<|im_start|>user\n", "observation: wall",
                                     "template: <|im_end|>\n<|im_start|>assistant\n", "prompt: <think>"));
  EXPECT_EQ(turn.num_sampled(), static_cast<int>(sampled.size()));
  EXPECT_EQ(turn.anchor, "1") << "of the state before the turn";
}

TEST(Episode, AnInlineReplyContinuesTheOpenMessageWithoutAPrefix) {
  Episode episode = episode_of({.form = ReplyForm::Inline});
  const auto sampled = tokens_of("look</think><search>sky z", false);
  Answer answer = ask(*episode.environment(), episode.response(sampled));
  const SpannedTokens observation = episode.render_reply(sampled, answer.reply).value();
  EXPECT_EQ(small_tokenizer().decode(observation.tokens), answer.reply.text);
  episode.close_turn(sampled, answer, observation);
  EXPECT_EQ(episode.response(tokens_of("so", true)).text, "so");
}

TEST(Episode, AnInlineReplyToAClosedMessageBecomesTheNextUserMessage) {
  Episode episode = episode_of({.form = ReplyForm::Inline});
  const auto sampled = tokens_of("look", true);
  const Answer answer = ask(*episode.environment(), episode.response(sampled));
  const SpannedTokens observation = episode.render_reply(sampled, answer.reply).value();
  EXPECT_EQ(small_tokenizer().decode(observation.tokens),
            "\n<|im_start|>user\n" + answer.reply.text + "<|im_end|>\n<|im_start|>assistant\n<think>");
  episode.close_turn(sampled, answer, observation);
  EXPECT_EQ(episode.response(tokens_of("so", true)).text, "<think>so");
}

TEST(Episode, ReadsTheCallsOfAResponseOnlyWhereToolsAreOffered) {
  const std::string call = "<tool_call>\n{\"name\": \"look_up\", \"arguments\": {\"word\": \"a\"}}\n</tool_call>";
  const Episode offered = episode_of({.prefix = "", .tools = {{.name = "look_up"}}});
  const PolicyResponse response = offered.response(tokens_of("I look " + call, true));
  EXPECT_EQ(response.text, "I look " + call);
  EXPECT_THAT(response.tool_calls,
              ::testing::ElementsAre(ToolCall{.name = "look_up", .arguments = "{\"word\": \"a\"}"}));
  EXPECT_EQ(response.problem, "");
  const PolicyResponse broken = offered.response(tokens_of("<tool_call>look!</tool_call>", true));
  EXPECT_THAT(broken.tool_calls, ::testing::IsEmpty());
  EXPECT_THAT(broken.problem, ::testing::StartsWith("this tool call cannot be read: "));
  EXPECT_THAT(episode_of({.prefix = ""}).response(tokens_of(call, true)).tool_calls, ::testing::IsEmpty());
}

TEST(Episode, ABranchContinuesIndependently) {
  Episode episode = episode_of({});
  Episode branch = episode.branch(episode.environment()->clone());
  const Answer one = ask(*episode.environment(), "a"), other = ask(*branch.environment(), "b");
  EXPECT_NE(one.anchor, other.anchor);
  EXPECT_EQ(ask(*episode_of({}).environment(), "b").anchor, other.anchor);
}

std::unique_ptr<EnvironmentFactory> factory_of(std::string_view name) {
  auto factory = make_environment_factory(name).value();
  EXPECT_TRUE(factory->prepare(1).ok());
  return factory;
}

TEST(Demonstration, HoldsTheScriptsResponsesAsSampledTokensIncludingTheEndOfTheMessage) {
  const auto factory = factory_of("skeleton");
  const Result<Tree> tree = demonstrate(*factory, small_chat(), {.index = 3, .seed = 2});
  ASSERT_TRUE(tree.ok()) << tree.error().message;
  EXPECT_THAT(violations(*tree), ::testing::IsEmpty());
  EXPECT_TRUE(tree->leaves[0].success);
  EXPECT_EQ(tree->leaves[0].score, 1);
  for (const Turn& turn : tree->turns) {
    const auto sampled = std::span(turn.tokens).subspan(turn.sampled_begin, turn.num_sampled());
    EXPECT_EQ(sampled.back(), small_chat().stop_tokens()[0]);
    EXPECT_THAT(small_tokenizer().decode(sampled), ::testing::StartsWith("<answer>"));
  }
}

TEST(Demonstration, AStopStringReplacesTheTokenThatEndsAMessage) {
  const auto factory = factory_of("search_qa");
  int searches = 0;
  for (std::int64_t index = 0; index < 5; ++index) {
    const Result<Tree> tree = demonstrate(*factory, small_chat(), {.index = index, .seed = 2});
    ASSERT_TRUE(tree.ok()) << tree.error().message;
    EXPECT_THAT(violations(*tree), ::testing::IsEmpty());
    for (std::size_t t = 0; t < tree->turns.size(); ++t) {
      const Turn& turn = tree->turns[t];
      const auto sampled = std::span(turn.tokens).subspan(turn.sampled_begin, turn.num_sampled());
      const std::string text = small_tokenizer().decode(sampled);
      const bool last = t + 1 == tree->turns.size();
      searches += last ? 0 : 1;
      EXPECT_TRUE(last || text.ends_with("</search>")) << text;
      if (text.ends_with("</search>")) continue;
      EXPECT_EQ(sampled.back(), small_chat().stop_tokens()[0]);
    }
  }
  EXPECT_GT(searches, 0);
}

}  // namespace
}  // namespace carnot
