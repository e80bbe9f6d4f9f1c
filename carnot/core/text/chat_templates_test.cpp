// The chat families, and templates of models that have no family here, against what the published Jinja templates
// render (tools/golden/chat_templates.py).
#include "testing/chat_templates.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "carnot/core/base/file.h"
#include "carnot/core/text/bpe_training.h"
#include "carnot/core/text/chat.h"
#include "carnot/core/text/chat_families.h"
#include "testing/missing.h"
#include "testing/paths.h"
#include "testing/recorded_chats.h"

namespace carnot {
namespace {

using nlohmann::ordered_json;

/// Bytes and the tokens of every family.
const Tokenizer& small_tokenizer() {
  static const Tokenizer tokenizer =
      Tokenizer::parse(train_byte_level_bpe(
                           std::vector<std::string>{"north"},
                           {.vocab_size = 290,
                            .added_tokens = {"<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<|start_header_id|>",
                                             "<|end_header_id|>", "<|eot_id|>", "<|eom_id|>", "<s>", "</s>", "[INST]",
                                             "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_CALLS]",
                                             "[TOOL_RESULTS]", "[/TOOL_RESULTS]"}})
                           .value(),
                       "small")
          .value();
  return tokenizer;
}

/// The family of that name; Llama's formats are those of their templates.
std::unique_ptr<ChatFamily> format_of(const std::string& name) {
  if (!name.starts_with("llama")) return make_chat_family(name, small_tokenizer()).value();
  testing::use_source_python();
  return TemplateChat::start(testing::template_of(testing::template_text(name)), small_tokenizer()).value();
}

class ChatTemplates : public ::testing::TestWithParam<std::string> {
 protected:
  ordered_json recorded_ = testing::recorded_chat("chat/" + GetParam());

  static std::string rendered(const ordered_json& one, const std::string& chat) {
    const auto tools = testing::recorded_tools(one);
    return small_tokenizer().decode(
        format_of(chat)->render_opening(testing::recorded_messages(one.at("messages")), "", tools).tokens);
  }
};

INSTANTIATE_TEST_SUITE_P(Published, ChatTemplates,
                         ::testing::Values("qwen2.5", "qwen3", "llama2", "llama3", "llama3.1", "mistral",
                                           "mistral_nemo", "qwen3.5", "qwen3.6"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

/// Control tokens among `tokens`.
std::vector<TokenId> control_tokens(const std::vector<TokenId>& tokens) {
  std::vector<TokenId> found;
  std::copy_if(tokens.begin(), tokens.end(), std::back_inserter(found),
               [](TokenId id) { return small_tokenizer().is_control(id); });
  return found;
}

TEST_P(ChatTemplates, ControlTokensInMessagesAreSpelledOutUnlessTheyAreAskedFor) {
  std::string hostile = "a";
  for (TokenId id = 0; id < small_tokenizer().vocab_size(); ++id)
    if (small_tokenizer().is_control(id)) hostile += std::string(small_tokenizer().bytes_of(id)) + "\u0338 b";
  const auto family = format_of(GetParam());
  const auto conversation = [](const std::string& text) {
    return std::vector<Message>{
        {.role = "user", .content = text}, {.role = "assistant", .content = text}, {.role = "user", .content = text}};
  };
  const auto opening = [&](const std::string& text) { return family->render_opening(conversation(text), "").tokens; };
  const auto reply = [&](const std::string& text) {
    return family->render_reply(std::vector<Message>{{.role = "user", .content = text}}, "", false).tokens;
  };
  EXPECT_EQ(control_tokens(opening(hostile)), control_tokens(opening("a")));
  EXPECT_EQ(control_tokens(reply(hostile)), control_tokens(reply("a")));
  EXPECT_EQ(control_tokens(family->render_inline(hostile).tokens), std::vector<TokenId>{});
  EXPECT_EQ(control_tokens(family->spoken(hostile, "", true)), std::vector<TokenId>{});
  EXPECT_NE(small_tokenizer().decode(reply(hostile)).find(small_tokenizer().normalize(hostile, ControlTokens::Text)),
            std::string::npos)
      << "the text stays what it was";
  family->read_control_tokens_as(ControlTokens::Tokens);
  EXPECT_GT(control_tokens(opening(hostile)).size(), control_tokens(opening("a")).size());
  EXPECT_FALSE(control_tokens(family->render_inline(hostile).tokens).empty());
}

TEST_P(ChatTemplates, RenderWhatThePublishedOnesDoWhereThoseDoNotRewriteHistory) {
  int equal = 0;
  for (const ordered_json& one : recorded_.at("cases")) {
    const std::string text = rendered(one, one.value("chat", GetParam()));
    if (one.at("rewrites").get<bool>() && !GetParam().starts_with("llama")) {
      EXPECT_NE(text, one.at("text").get<std::string>()) << one.at("name");
      continue;
    }
    EXPECT_EQ(text, one.at("text").get<std::string>()) << one.at("name");
    ++equal;
  }
  EXPECT_GE(equal, 6);
}

TEST_P(ChatTemplates, GrowOnlyAtTheirEnd) {
  const auto status = check_append_only(*format_of(GetParam()));
  EXPECT_TRUE(status.ok()) << status.error().message;
}

// A thought that was sampled stays in the tokens, also where a further question follows.
TEST_P(ChatTemplates, KeepEarlierThinking) {
  const std::vector<Message> messages = {
      {"user", "Which way?"}, {"assistant", "<think>\nMoss.\n</think>\n\nUp."}, {"user", "Sure?"}};
  const std::string text = small_tokenizer().decode(format_of(GetParam())->render_opening(messages, "").tokens);
  EXPECT_NE(text.find("<think>\nMoss.\n</think>\n\nUp."), std::string::npos) << text;
}

TEST_P(ChatTemplates, CallsAreSaidAsPublishedAndReadBack) {
  const auto family = format_of(GetParam());
  if (!family->takes_tools()) return;
  int said = 0;
  for (const ordered_json& one : recorded_.at("cases")) {
    if (one.value("chat", GetParam()) != GetParam()) continue;
    for (const Message& message : testing::recorded_messages(one.at("messages"))) {
      if (message.tool_calls.empty()) continue;
      ++said;
      const auto tokens = family->spoken_calls(message.content, message.tool_calls, "");
      const std::string text = small_tokenizer().decode(tokens);
      EXPECT_NE(one.at("text").get<std::string>().find(text), std::string::npos) << text;
      const PolicyResponse read = family->parse_response(text, testing::recorded_tools(one));
      EXPECT_EQ(read.problem, "");
      ASSERT_EQ(read.tool_calls.size(), message.tool_calls.size());
      const auto beside = std::string(family->text_beside_calls(text));
      EXPECT_EQ(family->spoken_calls(beside, message.tool_calls, ""), tokens) << "'" << beside << "'";
      for (std::size_t i = 0; i < read.tool_calls.size(); ++i) {
        EXPECT_EQ(read.tool_calls[i].name, message.tool_calls[i].name);
        EXPECT_EQ(ordered_json::parse(read.tool_calls[i].arguments),
                  ordered_json::parse(message.tool_calls[i].arguments));
        if (!read.tool_calls[i].id.empty()) {
          EXPECT_EQ(read.tool_calls[i].id, message.tool_calls[i].id);
        }
      }
    }
  }
  EXPECT_GT(said, 0);
}

TEST_P(ChatTemplates, ConversationsWithCallsGrowAsTheyAreRenderedAtOnce) {
  const auto family = format_of(GetParam());
  if (!family->takes_tools()) return;
  const std::string tool = R"({"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}})";
  const std::vector<Message> all = {
      {.role = "user", .content = "Which way?"},
      {.role = "assistant",
       .tool_calls = {{.name = "look_up", .arguments = R"({"word": "north"})", .id = "abcdef123"}}},
      {.role = "tool", .content = "up", .tool_call_id = "abcdef123"}};
  const auto messages = std::span(all);
  SpannedTokens grown = family->render_opening(messages.first(1), "", {&tool, 1});
  const auto said = family->spoken_calls("", all[1].tool_calls, "");
  grown.tokens.insert(grown.tokens.end(), said.begin(), said.end());
  grown.tokens.push_back(family->stop_tokens()[0]);
  append(grown, family->render_reply(messages.last(1), "", true));
  EXPECT_EQ(small_tokenizer().decode(grown.tokens),
            small_tokenizer().decode(family->render_opening(messages, "", {&tool, 1}).tokens));
}

TEST_P(ChatTemplates, WhatTheFormatCannotWriteIsSaidBeforeItIsRendered) {
  const auto family = format_of(GetParam());
  const std::string tool = R"({"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}})";
  const std::vector<Tools> offers = {{}, {&tool, 1}};
  const ToolCall call{.name = "wait", .id = "abcdef123"};
  const std::vector<std::vector<Message>> conversations = {
      {{"user", "Hi"}},
      {{"system", "S"}},
      {{"system", "S"}, {"system", "T"}, {"user", "Hi"}},
      {{"user", "Hi"}, {"system", "S"}},
      {{"user", "Hi"}, {.role = "assistant", .tool_calls = {call}}, {"tool", "x", {}, "abcdef123"}},
      {{"user", "Hi"}, {.role = "assistant", .tool_calls = {call, call}}, {"tool", "x", {}, "abcdef123"}},
      {{"usr", "Hi"}}};
  for (const auto& messages : conversations) {
    for (const Tools tools : offers) {
      // What is accepted is rendered; what would be a bug to render is refused. A template may refuse in rendering.
      bool rendered = true;
      try {
        (void)family->render_opening(messages, "", tools);
      } catch (const CheckError&) {
        rendered = false;
      }
      const Status writable = family->check_writable(messages, tools);
      EXPECT_TRUE(rendered || !writable.ok() || family->name() == TemplateChat::kName) << messages.back().role;
      if (messages.size() == 1 && messages[0].role == "user") {
        EXPECT_EQ(writable.ok(), tools.empty() || family->takes_tools());
      }
    }
  }
  EXPECT_FALSE(family->check_writable(conversations.back()).ok());
}

TEST_P(ChatTemplates, WhatIsNoCallIsTextAndWhatIsABrokenOneIsSaid) {
  const auto family = format_of(GetParam());
  for (const std::string text : {"", "Up.", "{\"moves\": 3}", "{ a set }", "tool_call"}) {
    const PolicyResponse read = family->parse_response(text);
    EXPECT_EQ(read, PolicyResponse(text));
  }
  if (!family->takes_tools()) return;
  std::string call = small_tokenizer().decode(family->spoken_calls("", std::vector<ToolCall>{{.name = "wait"}}, ""));
  ASSERT_EQ(family->parse_response(call).tool_calls.size(), 1u);
  for (std::size_t at = 0; at < call.size(); ++at) {
    std::string cut = call;
    cut.erase(at, 1);  // no byte of it may bring the reader down; a call and a problem exclude each other
    const PolicyResponse read = family->parse_response(cut);
    EXPECT_TRUE(read.problem.empty() || read.tool_calls.empty());
  }
  call.erase(call.find("wait"), 4);
  EXPECT_NE(family->parse_response(call).problem, "");
}

TEST_P(ChatTemplates, AnIdIsReadOnlyWhereTheFormatWritesIt) {
  const auto family = format_of(GetParam());
  if (!family->takes_tools()) return;
  const std::vector<ToolCall> call{{.name = "wait", .id = "abcdef123"}};
  std::string text = small_tokenizer().decode(family->spoken_calls("", call, ""));
  const bool writes_it = text.find(call[0].id) != std::string::npos;
  if (text.find('}') == std::string::npos) return;  // no place for one
  if (!writes_it) text.insert(text.rfind('}'), R"(, "id": "abcdef123")");
  const auto read = family->parse_response(text).tool_calls;
  ASSERT_EQ(read.size(), 1u) << text;
  EXPECT_EQ(read[0].id, writes_it ? call[0].id : "");
  EXPECT_EQ(family->parse_response(small_tokenizer().decode(family->spoken_calls("", read, ""))).tool_calls, read);
}

/// The tokens of a conversation as a rollout makes them: an opening, what is said, a reply.
std::vector<TokenId> turn_by_turn(const ChatFamily& chat, const std::vector<Message>& conversation) {
  const auto messages = std::span(conversation);
  std::vector<TokenId> tokens = chat.render_opening(messages.first(1), "").tokens;
  const auto append = [&](const std::vector<TokenId>& more) { tokens.insert(tokens.end(), more.begin(), more.end()); };
  for (std::size_t i = 1; i + 1 < messages.size(); i += 2) {
    append(chat.spoken(messages[i].content, "", true));
    append({chat.stop_tokens()[0]});
    append(chat.render_reply(messages.subspan(i + 1, 1), "", true).tokens);
  }
  return tokens;
}

TEST(Qwen3Thinking, StaysInTheHistoryWhichElseIsWhatThePublishedTemplateRenders) {
  const auto recorded = testing::recorded_chat("chat/qwen3");
  const auto& cases = recorded.at("cases");
  const auto one = std::find_if(cases.begin(), cases.end(),
                                [](const auto& each) { return each.at("name") == "a history with thinking"; });
  ASSERT_NE(one, cases.end());
  std::string with_thought = one->at("text");
  ASSERT_EQ(with_thought.find("<think>"), std::string::npos);
  const std::string thought = "<think>\nThe moss is on this side.\n</think>\n\n", answer = "Up, I think.";
  with_thought.insert(with_thought.find(answer), thought);

  const auto chat = make_chat_family("qwen3", small_tokenizer()).value();
  const auto messages = testing::recorded_messages(one->at("messages"));
  ASSERT_EQ(messages[1].content, thought + answer);
  EXPECT_EQ(small_tokenizer().decode(turn_by_turn(*chat, messages)), with_thought);
  EXPECT_EQ(turn_by_turn(*chat, messages), chat->render_opening(messages, "").tokens);
}

TEST(Qwen35Thinking, IsNotBegunTwiceWhereTheHeadBeginsIt) {
  const auto chat = make_chat_family("qwen3.5", small_tokenizer()).value();
  const auto text = [&](const std::string& content) {
    return small_tokenizer().decode(chat->spoken(content, "", true));
  };
  EXPECT_EQ(text("<think>\nMoss.\n</think>\n\nUp."), "Moss.\n</think>\n\nUp.");
  EXPECT_EQ(text("Moss.\n</think>\n\nUp."), "Moss.\n</think>\n\nUp.");
  EXPECT_EQ(small_tokenizer().decode(
                chat->spoken_calls("<think>\nHm.\n</think>", std::vector<ToolCall>{{.name = "wait"}}, "")),
            "Hm.\n</think>\n\n<tool_call>\n<function=wait>\n</function>\n</tool_call>");
}

TEST(Qwen3Thinking, EveryTurnsTokensBeginWithThoseOfTheTurnBefore) {
  const std::vector<Message> messages = {{"user", "Which way?"},
                                         {"assistant", "<think>\nMoss.\n</think>\n\nUp."},
                                         {"user", "Sure?"},
                                         {"assistant", "<think>\nHm.\n</think>\n\nYes."},
                                         {"user", "Why?"}};
  for (const char* name : {"qwen3", "qwen3_no_think", "qwen3.5", "qwen3.5_no_think", "qwen3.6", "qwen3.6_no_think"}) {
    const auto chat = make_chat_family(name, small_tokenizer()).value();
    std::vector<TokenId> before;
    for (std::size_t count = 1; count <= messages.size(); count += 2) {
      const auto so_far = std::span(messages).first(count);
      const std::vector<TokenId> tokens = chat->render_opening(so_far, "").tokens;
      ASSERT_GT(tokens.size(), before.size());
      EXPECT_TRUE(std::equal(before.begin(), before.end(), tokens.begin())) << name << ", " << count;
      EXPECT_EQ(tokens, turn_by_turn(*chat, {so_far.begin(), so_far.end()})) << name << ", " << count;
      before = tokens;
    }
  }
}

class SentencePieceChat : public ::testing::TestWithParam<std::string> {
 protected:
  const Tokenizer tokenizer_ = Tokenizer::load(source_path("tests/golden/tokenizer/") + GetParam() + ".json").value();
  const std::unique_ptr<ChatFamily> chat_ = [&] {
    testing::use_source_python();
    return TemplateChat::start(testing::template_of(testing::template_text("llama2")), tokenizer_).value();
  }();
};
INSTANTIATE_TEST_SUITE_P(Trained, SentencePieceChat, ::testing::Values("sentence_piece", "metaspace"));

TEST_P(SentencePieceChat, GrowsOnlyAtItsEndAlthoughBlanksArePutBeforeText) {
  const auto status = check_append_only(*chat_);
  EXPECT_TRUE(status.ok()) << status.error().message;
}

TEST_P(SentencePieceChat, SpansCoverWhatTheyName) {
  const std::vector<Message> messages = {{"system", "Be brief."}, {"user", "Which way is north, caf\u00E9?"}};
  const SpannedTokens rendered = chat_->render_opening(messages, "");
  std::vector<std::string> prompts;
  for (const Span& span : rendered.spans)
    if (span.kind == SpanKind::Prompt)
      prompts.push_back(tokenizer_.decode({rendered.tokens.begin() + span.begin, rendered.tokens.begin() + span.end}));
  // A word's blank is the word's: "\n\nWhich" has none, so nothing of the scaffolding is among them.
  EXPECT_EQ(prompts, (std::vector<std::string>{"Be brief.", "Which way is north, caf\u00E9?"}));
}

TEST(ChatOfATemplate, IsFoundByWhatOnlyItContains) {
  EXPECT_EQ(chat_family_of_template("{{ '<|start_header_id|>' + m['role'] + '<|end_header_id|>' + '<|eot_id|>' }}"),
            "");
  EXPECT_EQ(chat_family_of_template("{{ \"[AVAILABLE_TOOLS] [\" }} {{- \"[INST] \" + message }}"), "mistral");
  EXPECT_EQ(chat_family_of_template("{{ \"[AVAILABLE_TOOLS][\" }} {{- \"[INST]\" + message }}"), "mistral_nemo");
  EXPECT_EQ(chat_family_of_template("{{ bos_token + '[INST] ' + '<<SYS>>' }}"), "");
  EXPECT_EQ(
      chat_family_of_template("<|im_start|> You are Qwen, created by Alibaba Cloud. You are a helpful assistant."),
      "qwen2.5");
  EXPECT_EQ(chat_family_of_template("<|im_start|> {{ reasoning_content.strip('\\n') }}"), "qwen3");
  EXPECT_EQ(chat_family_of_template("'<parameter=' {{ reasoning_content|trim }} enable_thinking is false"), "qwen3.5");
  EXPECT_EQ(chat_family_of_template("'<parameter=' enable_thinking is defined and enable_thinking is true"),
            "qwen3.5_no_think");
  EXPECT_EQ(chat_family_of_template("'<parameter=' preserve_thinking is defined and preserve_thinking is true"),
            "qwen3.6");
  EXPECT_EQ(chat_family_of_template("<|im_start|>system\\nYou are a pirate.<|im_end|>"), "");
  EXPECT_EQ(chat_family_of_template(""), "");
}

TEST(ChatOfATemplate, OfQwenIsFound) {
  const auto jinja = read_file(source_path("tests/golden/chat_templates/qwen2.5.jinja"));
  EXPECT_EQ(chat_family_of_template(*jinja), "qwen2.5");
}

TEST(ChatOfATemplate, OfQwenAsPublishedIsFound) {
  CARNOT_NEEDS_PUBLISHED_DATA();
  const auto jinja = read_file(published_path("tokenizer/qwen2/chat_template.jinja"));
  EXPECT_EQ(chat_family_of_template(*jinja), "qwen2.5");
}

}  // namespace
}  // namespace carnot
