#include "carnot/core/text/span_parser.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "carnot/core/base/random.h"
#include "carnot/core/text/bpe_training.h"
#include "testing/small_tokenizer.h"

namespace carnot {
namespace {

/// Tags are added tokens, and some tokens straddle the borders of tags.
const Tokenizer& tokenizer() {
  static const Tokenizer built = [] {
    auto file = nlohmann::json::parse(
        train_byte_level_bpe(
            std::vector<std::string>{},
            {.vocab_size = 300, .added_tokens = {"<think>", "</think>", "<|im_end|>"}, .protected_words = {"up"}})
            .value());
    int next = 400;
    for (const char* straddling : {"x<", "r>u", "p</"}) {
      file["added_tokens"].push_back({{"id", next++}, {"content", straddling}});
    }
    return Tokenizer::parse(file.dump(), "built").value();
  }();
  return built;
}

/// Kind of each token: 'T' or 'A'.
std::string kinds(const ParsedResponse& parsed) {
  std::string letters;
  for (const Span& span : parsed.spans)
    letters.append(span.end - span.begin, span.kind == SpanKind::Action ? 'A' : 'T');
  return letters;
}

std::string action_text(const std::vector<TokenId>& ids, const ParsedResponse& parsed) {
  std::string text;
  for (const Span& span : parsed.spans)
    if (span.kind == SpanKind::Action)
      text += tokenizer().decode(std::span(ids).subspan(span.begin, span.end - span.begin));
  return text;
}

struct Case {
  bool parsed = false;
  std::string action{};
};

Case parse(const std::string& text, const SpanGrammar& grammar = {}) {
  const auto ids = tokenizer().encode(text);
  const ParsedResponse parsed = parse_response(tokenizer(), ids, grammar);
  EXPECT_EQ(kinds(parsed).size(), ids.size());
  return {parsed.parsed, action_text(ids, parsed)};
}

TEST(SpanParser, InsideTheActionPairIsActionAndAllElseIsThink) {
  const Case one = parse("<think>go</think>\n<answer>2,3</answer><|im_end|>");
  EXPECT_TRUE(one.parsed);
  EXPECT_EQ(one.action, "2,3");
}

TEST(SpanParser, TagsCountAsActionOnRequest) {
  EXPECT_EQ(parse("<think>a</think> <answer>b</answer>.", {.tags_are_action = true}).action, "<answer>b</answer>");
}

TEST(SpanParser, ThePromptMayHaveOpenedTheThinking) {
  EXPECT_TRUE(parse("a</think><answer>b</answer>", {.think_opened_by_prompt = true}).parsed);
  EXPECT_FALSE(parse("a</think><answer>b</answer>").parsed);
  EXPECT_FALSE(parse("<think>a</think><answer>b</answer>", {.think_opened_by_prompt = true}).parsed);
}

TEST(SpanParser, OneOfSeveralActionsIsTaken) {
  const SpanGrammar grammar{.action_tags = {"search", "answer"}};
  EXPECT_EQ(parse("<think>a</think><search>q</search>", grammar).action, "q");
  EXPECT_EQ(parse("<think>a</think><answer>q</answer>", grammar).action, "q");
  EXPECT_FALSE(parse("<think>a</think><search>q</answer>", grammar).parsed);
  EXPECT_FALSE(parse("<think>a</think><search>q</search><answer>r</answer>", grammar).parsed);
}

TEST(SpanParser, WithoutAThinkTagTheActionAloneIsAsked) {
  EXPECT_EQ(parse("I go <answer>left</answer>", {.think_tag = ""}).action, "left");
}

TEST(SpanParser, AnEmptyActionIsAnAction) {
  const Case empty = parse("<think></think><answer></answer>");
  EXPECT_TRUE(empty.parsed);
  EXPECT_EQ(empty.action, "");
}

TEST(SpanParser, WhatIsNotOnePairEachIsThinkAltogether) {
  for (const std::string text :
       {"", "just text", "<think>a", "<think>a</think>", "<answer>b</answer>", "<think>a</think><answer>b",
        "<think>a<answer>b</answer></think>", "<answer>b</answer><think>a</think>",
        "<think>a</think><think>b</think><answer>c</answer>", "<think>a</think><answer>b</answer><answer>c</answer>",
        "<think>a</think></answer>b<answer>", "<think>a</think><answer >b</answer>"}) {
    const Case one = parse(text);
    EXPECT_FALSE(one.parsed) << text;
    EXPECT_EQ(one.action, "") << text;
  }
}

TEST(SpanParser, AStraddlingTokenBelongsWhereItsFirstByteLies) {
  // "r>u" begins in the tag, "p</" in the action.
  const auto ids = tokenizer().encode("<think>x</think><answer>up</answer>");
  const ParsedResponse parsed = parse_response(tokenizer(), ids, {});
  EXPECT_TRUE(parsed.parsed);
  EXPECT_EQ(action_text(ids, parsed), "p</");
}

/// The definition by a regular expression, and the kinds byte by byte.
std::string kinds_by_definition(const std::vector<TokenId>& ids, const SpanGrammar& grammar) {
  const std::string text = tokenizer().decode(ids);
  const std::string no_tag = "(?:(?!</?(?:think|search|answer)>)[\\s\\S])*";
  const std::string open = grammar.think_opened_by_prompt ? "" : no_tag + "<think>";
  const std::regex whole(open + no_tag + "</think>" + no_tag + "<(search|answer)>(" + no_tag + ")</\\1>" + no_tag);
  std::smatch match;
  std::string byte_kinds(text.size(), 'T');
  if (std::regex_match(text, match, whole)) {
    const auto tag = grammar.tags_are_action ? match.length(1) + 2 : 0;
    const auto tags = grammar.tags_are_action ? 2 * tag + 1 : 0;
    byte_kinds.replace(match.position(2) - tag, match.length(2) + tags, match.length(2) + tags, 'A');
  }
  std::string letters;
  std::size_t offset = 0;
  for (const TokenId id : ids) {
    letters += byte_kinds[offset];
    offset += tokenizer().bytes_of(id).size();
  }
  return letters;
}

TEST(SpanParser, MatchesTheDefinitionOnRandomResponses) {
  RandomStream random(12);
  const std::vector<std::string> good = {"<think>", "up x", "</think>", " ", "<answer>", "up 1", "</answer>"};
  const std::vector<std::string> parts = {"<think>", "</think>", "<answer>", "</answer>", "<search>", "</search>",
                                          "x<",      "up",       "r>u",      "\n",        "<",        "<answer"};
  int acted = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    std::vector<std::string> chosen = good;
    const auto edits = random.below(3);
    for (std::uint64_t i = 0; i < edits; ++i) {
      const auto at = static_cast<std::ptrdiff_t>(random.below(chosen.size()));
      if (random.chance(0.3)) {
        chosen.erase(chosen.begin() + at);
      } else {
        chosen.insert(chosen.begin() + at, random.pick(parts));
      }
    }
    std::string text;
    for (const std::string& part : chosen) text += part;
    const SpanGrammar grammar{.action_tags = {"search", "answer"},
                              .tags_are_action = random.chance(0.5),
                              .think_opened_by_prompt = random.chance(0.2)};
    const auto ids = tokenizer().encode(text);
    const std::string expected = kinds_by_definition(ids, grammar);
    acted += expected.find('A') != std::string::npos;
    ASSERT_EQ(kinds(parse_response(tokenizer(), ids, grammar)), expected) << text;
  }
  EXPECT_GT(acted, 300);
}

TEST(TokensOfThought, EndWithTheClosingTag) {
  const Tokenizer& tokenizer = testing::small_tokenizer();
  for (const std::string text : {"I look at the answer</think><answer>left</answer>", "</think>x", "a</think>",
                                 "no tag at all", "two</think> and</think> more"}) {
    const std::vector<TokenId> tokens = tokenizer.encode(text);
    int expected = 0;
    for (std::size_t n = 1; n < tokens.size() && expected == 0; ++n)
      if (tokenizer.decode(std::span(tokens).first(n)).find("</think>") != std::string::npos)
        expected = static_cast<int>(n);
    EXPECT_EQ(tokens_of_thought(tokenizer, tokens, "think"), expected) << text;
    EXPECT_EQ(tokens_of_thought(tokenizer, tokens, ""), 0);
  }
}

}  // namespace
}  // namespace carnot
