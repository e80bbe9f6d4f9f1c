#include "carnot/core/text/chat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "carnot/core/text/bpe_training.h"
#include "carnot/core/text/chat_families.h"
#include "testing/qwen2_tokenizer.h"
#include "testing/random_text.h"

namespace carnot {
namespace {

using ::testing::HasSubstr;
using Messages = std::vector<Message>;

/// What Qwen2.5's published template writes for system, user and assistant messages.
std::string template_text(const Messages& messages, bool default_system) {
  std::string text;
  if (default_system && (messages.empty() || messages[0].role != "system"))
    text += "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\n";
  for (const Message& message : messages)
    text += "<|im_start|>" + message.role + "\n" + message.content + "<|im_end|>\n";
  return text + "<|im_start|>assistant\n";
}

class QwensChat : public testing::Qwen2Tokenizer {
 protected:
  static std::unique_ptr<ChatFamily> family(std::string_view name) { return make_chat_family(name, qwen()).value(); }

  /// The text of each span, with its kind before it.
  static std::vector<std::string> span_texts(const SpannedTokens& rendered) {
    std::vector<std::string> texts;
    for (const Span& span : rendered.spans) {
      const auto tokens = std::span(rendered.tokens).subspan(span.begin, span.end - span.begin);
      texts.push_back(std::string(name_of(span.kind)) + ": " + qwen().decode(tokens));
    }
    return texts;
  }
};
CARNOT_WITH_EACH_QWEN2(QwensChat);

TEST_P(QwensChat, OpeningIsTheTokensOfThePublishedTemplatesText) {
  RandomStream random(11);
  for (const std::string name : {"qwen2.5", "qwen3", "chatml"}) {
    const auto chat = family(name);
    for (int trial = 0; trial < 200; ++trial) {
      Messages messages;
      if (random.chance(0.5)) messages.push_back({"system", testing::random_unicode(random, 10)});
      for (std::uint64_t i = 0; i < 1 + random.below(3); ++i) {
        messages.push_back({"user", testing::random_unicode(random, 12)});
        if (random.chance(0.5)) messages.push_back({"assistant", testing::random_unicode(random, 12)});
      }
      const std::string prefix = random.chance(0.5) ? "<think>" : "";
      const SpannedTokens rendered = chat->render_opening(messages, prefix);
      const std::string text = template_text(messages, name == "qwen2.5") + prefix;
      ASSERT_EQ(rendered.tokens, qwen().encode(text)) << text;
      ASSERT_EQ(rendered.spans.back().end, static_cast<int>(rendered.tokens.size()));
    }
  }
}

TEST_P(QwensChat, ContentsArePromptAndScaffoldingIsTemplate) {
  EXPECT_EQ(span_texts(family("qwen3")->render_opening(Messages{{"system", "Be brief."}, {"user", "Hi"}}, "<think>")),
            (std::vector<std::string>{"template: <|im_start|>system\n", "prompt: Be brief.",
                                      "template: <|im_end|>\n<|im_start|>user\n", "prompt: Hi",
                                      "template: <|im_end|>\n<|im_start|>assistant\n", "prompt: <think>"}));
}

TEST_P(QwensChat, TheDefaultSystemMessageIsTemplate) {
  const auto texts = span_texts(family("qwen2.5")->render_opening(Messages{{"user", "Hi"}}, ""));
  ASSERT_EQ(texts.size(), 3u);
  EXPECT_EQ(texts[1], "prompt: Hi");
}

TEST_P(QwensChat, ATokenAcrossABorderBelongsWhereItBegins) {
  // The line end of the header and that of the content are one token.
  const auto texts = span_texts(family("chatml")->render_opening(Messages{{"user", "\nHi"}}, ""));
  EXPECT_EQ(texts[0], "template: <|im_start|>user\n\n");
  EXPECT_EQ(texts[1], "prompt: Hi");
}

TEST_P(QwensChat, SpansFollowComposedText) {
  const auto texts = span_texts(family("chatml")->render_opening(Messages{{"user", "cafe\u0301 cafe\u0301"}}, ""));
  EXPECT_EQ(texts[1], "prompt: caf\u00E9 caf\u00E9");
}

TEST_P(QwensChat, AReplyContinuesAClosedMessageAndClosesAnOpenOne) {
  const auto chat = family("qwen2.5");
  const Messages observation = {{"user", "You moved."}};
  EXPECT_EQ(span_texts(chat->render_reply(observation, "<think>", true)),
            (std::vector<std::string>{"template: \n<|im_start|>user\n", "observation: You moved.",
                                      "template: <|im_end|>\n<|im_start|>assistant\n", "prompt: <think>"}));
  EXPECT_EQ(span_texts(chat->render_reply(observation, "", false))[0], "template: <|im_end|>\n<|im_start|>user\n");
}

TEST_P(QwensChat, ToolResultsOfQwenShareAUserMessage) {
  const Messages tools = {{"tool", "one"}, {"tool", "two"}};
  EXPECT_EQ(qwen().decode(family("qwen2.5")->render_reply(tools, "", true).tokens),
            "\n<|im_start|>user\n<tool_response>\none\n</tool_response>\n<tool_response>\ntwo\n</tool_response>"
            "<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(qwen().decode(family("chatml")->render_reply(Messages{{"tool", "one"}}, "", true).tokens),
            "\n<|im_start|>tool\none<|im_end|>\n<|im_start|>assistant\n");
}

TEST_P(QwensChat, InlineTextIsObservation) {
  const SpannedTokens rendered = family("qwen3")->render_inline("<result>42</result>");
  EXPECT_EQ(rendered.tokens, qwen().encode("<result>42</result>"));
  EXPECT_EQ(span_texts(rendered), (std::vector<std::string>{"observation: <result>42</result>"}));
  EXPECT_TRUE(family("qwen3")->render_inline("").spans.empty());
}

TEST_P(QwensChat, StopTokensBeginWithTheUsualOne) {
  EXPECT_EQ(family("qwen2.5")->stop_tokens(), (std::vector<TokenId>{first_added() + 2, first_added()}));
}

TEST_P(QwensChat, FurtherStopTokensFollowOnceAndOnlyThoseOfTheTokenizer) {
  const auto chat = family("qwen2.5");
  chat->also_stop_at(std::vector<TokenId>{first_added(), 5, 5, 9999999});
  EXPECT_EQ(chat->stop_tokens(), (std::vector<TokenId>{first_added() + 2, first_added(), 5}));
}

TEST_P(QwensChat, AnUnknownFamilyIsAnsweredWithTheKnownOnes) {
  const auto unknown = make_chat_family("vicuna", qwen());
  ASSERT_FALSE(unknown.ok());
  for (const std::string& name : chat_family_names()) EXPECT_THAT(unknown.error().message, HasSubstr(name));
}

TEST(Chat, ATokenizerWithoutTheTokensIsRefusedWithTheirNames) {
  const auto bare = Tokenizer::parse(
      train_byte_level_bpe(std::vector<std::string>{"a"}, {.vocab_size = 300, .added_tokens = {"<|im_start|>"}})
          .value(),
      "bare");
  const auto chat = make_chat_family("chatml", *bare);
  ASSERT_FALSE(chat.ok());
  EXPECT_THAT(chat.error().message, HasSubstr("<|im_end|>"));
  EXPECT_EQ(chat.error().message.find("<|im_start|>"), std::string::npos);
}

TEST_P(QwensChat, AnUnknownRoleIsABug) {
  EXPECT_THROW(family("qwen3")->render_opening(Messages{{"usr", "Hi"}}, ""), CheckError);
}

TEST_P(QwensChat, OnlyEverAppendsInEveryFamily) {
  for (const char* name : {"chatml", "qwen2", "qwen2.5", "qwen3", "qwen3_no_think"}) {
    const auto status = check_append_only(*family(name));
    EXPECT_TRUE(status.ok()) << status.error().message;
  }
  const auto small = Tokenizer::parse(
      train_byte_level_bpe(std::vector<std::string>{"left right left right"},
                           {.vocab_size = 300, .added_tokens = {"<|im_start|>", "<|im_end|>", "<think>", "</think>"}})
          .value(),
      "small");
  EXPECT_TRUE(check_append_only(**make_chat_family("chatml", *small)).ok());
}

std::string edited_qwen_like(const std::string& from, const std::string& to) {
  std::string text = train_byte_level_bpe(std::vector<std::string>{"left right"},
                                          {.vocab_size = 300, .added_tokens = {"<|im_start|>", "<|im_end|>"}})
                         .value();
  const std::size_t at = text.find(from);
  return text.replace(at, from.size(), to);
}

TEST(AppendOnly, ATokenizerThatPutsABlankBeforeTextIsRefused) {
  const auto tokenizer =
      Tokenizer::parse(edited_qwen_like("\"add_prefix_space\": false", "\"add_prefix_space\": true"), "edited");
  const auto status = check_append_only(**make_chat_family("chatml", *tokenizer));
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, HasSubstr("comes back as"));
}

TEST(AppendOnly, AnEndTokenThatTakesTheLineEndIsRefusedWithThePlace) {
  const auto tokenizer =
      Tokenizer::parse(edited_qwen_like("\"content\": \"<|im_end|>\",",
                                        "\"content\": \"<|im_end|>\", \"rstrip\": true, \"special\": true, "
                                        "\"lstrip\": false, \"single_word\": false, \"normalized\": false}, "
                                        "{\"id\": 299, \"content\": \"<|other|>\","),
                       "edited");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  const auto status = check_append_only(**make_chat_family("chatml", *tokenizer));
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, HasSubstr("turn by turn"));
}

}  // namespace
}  // namespace carnot
