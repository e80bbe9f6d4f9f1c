// Chat formats of the models that write calls of functions in forms of their own, from templates written for these
// tests, against what the published templates render (tools/golden/chat_templates.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "carnot/core/text/tool_call_form.h"
#include "testing/chat_templates.h"
#include "testing/recorded_chats.h"

namespace carnot {
namespace {

using nlohmann::ordered_json;
using testing::recorded_chat;
using testing::recorded_messages;
using testing::recorded_tools;

/// A model's tokens and how it writes calls.
struct Model {
  std::string name{};
  std::vector<std::string> tokens{};  ///< the one that ends a message first
  const ToolCallForm& (*form)() = nullptr;
  std::string bos{};
  const char* message_end = nullptr;  ///< where it is not eos_token
};

const std::vector<std::string> kMistral = {"</s>",    "<s>",          "[SYSTEM_PROMPT]",   "[/SYSTEM_PROMPT]",
                                           "[INST]",  "[/INST]",      "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]",
                                           "[ARGS]",  "[TOOL_CALLS]", "[TOOL_RESULTS]",    "[/TOOL_RESULTS]",
                                           "[THINK]", "[/THINK]",     "[CALL_ID]",         "[TOOL_CONTENT]"};
const std::vector<std::string> kLfm = {"<|im_end|>", "<|im_start|>", "<|startoftext|>", "<|tool_call_start|>",
                                       "<|tool_call_end|>"};
const std::vector<std::string> kGranite = {"<|end_of_text|>", "<|start_of_role|>", "<|end_of_role|>", "<|tool_call|>"};
const std::vector<std::string> kChatMlTokens = {"<|im_end|>", "<|im_start|>", "<tool_call>", "</tool_call>"};

const std::vector<Model>& models() {
  static const std::vector<Model> all = {
      {.name = "phi4_mini",
       .tokens = {"<|endoftext|>", "<|end|>", "<|user|>", "<|assistant|>", "<|system|>", "<|tool|>", "<|/tool|>",
                  "<|tool_call|>", "<|/tool_call|>"},
       .form = phi_tool_calls,
       .message_end = "<|end|>"},
      {.name = "granite3.3", .tokens = kGranite, .form = granite_tool_calls},
      {.name = "granite4", .tokens = kGranite, .form = tagged_tool_calls},
      {.name = "smollm3", .tokens = kChatMlTokens, .form = tagged_tool_calls},
      {.name = "olmo3", .tokens = {"<|im_end|>", "<|im_start|>"}, .form = olmo_tool_calls},
      {.name = "lfm2", .tokens = kLfm, .form = lfm_tool_calls, .bos = "<|startoftext|>"},
      {.name = "lfm2_first", .tokens = kLfm, .form = lfm_tool_calls, .bos = "<|startoftext|>"},
      {.name = "ministral3", .tokens = kMistral, .form = named_tool_calls, .bos = "<s>"},
      {.name = "mistral_small3.2", .tokens = kMistral, .form = named_tool_calls_with_ids, .bos = "<s>"},
      {.name = "qwen3_coder", .tokens = kChatMlTokens, .form = parameter_tool_calls},
  };
  return all;
}

class ModelTemplate : public ::testing::TestWithParam<Model> {
 protected:
  static const Tokenizer& tokenizer() {
    static std::map<std::string, Tokenizer> made;
    auto found = made.find(GetParam().name);
    if (found == made.end()) {
      const auto json = train_byte_level_bpe(std::vector<std::string>{"north"},
                                             {.vocab_size = 290, .added_tokens = GetParam().tokens});
      found = made.emplace(GetParam().name, Tokenizer::parse(*json, "model").value()).first;
    }
    return found->second;
  }

  static Result<std::unique_ptr<TemplateChat>> start(std::string_view name = TemplateChat::kName) {
    testing::use_source_python();
    ChatTemplate chat{.jinja = testing::template_text(GetParam().name),
                      .tokens = {{"eos_token", GetParam().tokens[0]}},
                      .thinking = TemplateChat::thinking_of(name)};
    if (!GetParam().bos.empty()) chat.tokens.emplace("bos_token", GetParam().bos);
    return TemplateChat::start(chat, tokenizer());
  }

  /// Started once for all tests of a model.
  static const TemplateChat& usual_chat() {
    static std::map<std::string, std::unique_ptr<TemplateChat>> made;
    auto& chat = made[GetParam().name];
    if (!chat) chat = start().value();
    return *chat;
  }

  static std::string text_of(const SpannedTokens& rendered) { return tokenizer().decode(rendered.tokens); }

  ordered_json recorded_ = recorded_chat("chat/" + GetParam().name);
  const TemplateChat& chat_ = usual_chat();
};

INSTANTIATE_TEST_SUITE_P(Written, ModelTemplate, ::testing::ValuesIn(models()), [](const auto& info) {
  std::string name = info.param.name;
  std::ranges::replace(name, '.', '_');
  return name;
});

TEST_P(ModelTemplate, OpeningsAreWhatThePublishedTemplateRenders) {
  int equal = 0;
  for (const ordered_json& one : recorded_.at("cases")) {
    const std::string name = one.value("chat", std::string(TemplateChat::kName));
    const auto chat = name == TemplateChat::kName ? nullptr : start(name).value();
    const ChatFamily& used = chat ? *chat : chat_;
    EXPECT_EQ(used.name(), name);
    const auto rendered =
        used.try_render_opening(recorded_messages(one.at("messages")), "", recorded_tools(one)).value();
    EXPECT_EQ(text_of(rendered), one.at("text").get<std::string>()) << one.at("name");
    ++equal;
  }
  EXPECT_GE(equal, 5);
}

TEST_P(ModelTemplate, GrowsOnlyAtItsEnd) {
  const Status grows = check_append_only(chat_);
  EXPECT_TRUE(grows.ok()) << grows.error().message;
}

TEST_P(ModelTemplate, CallsAreSaidInItsFormAsThePublishedTemplateHasThemAndReadBack) {
  int said = 0;
  for (const ordered_json& one : recorded_.at("cases")) {
    for (const Message& message : recorded_messages(one.at("messages"))) {
      if (message.tool_calls.empty()) continue;
      ++said;
      const std::string text = tokenizer().decode(chat_.spoken_calls(message.content, message.tool_calls, ""));
      EXPECT_EQ(text, GetParam().form().text_of(message.content, message.tool_calls));
      EXPECT_THAT(one.at("text").get<std::string>(), ::testing::HasSubstr(text));
      const PolicyResponse read = chat_.parse_response(text, recorded_tools(one));
      EXPECT_EQ(read.problem, "");
      ASSERT_EQ(read.tool_calls.size(), message.tool_calls.size()) << text;
      for (std::size_t i = 0; i < read.tool_calls.size(); ++i) {
        EXPECT_EQ(read.tool_calls[i].name, message.tool_calls[i].name);
        EXPECT_EQ(ordered_json::parse(read.tool_calls[i].arguments),
                  ordered_json::parse(message.tool_calls[i].arguments));
      }
      const std::string_view beside = chat_.text_beside_calls(text);
      EXPECT_EQ(GetParam().form().text_of(beside, message.tool_calls), text) << "'" << beside << "'";
    }
  }
  EXPECT_GE(said, 3);
}

TEST_P(ModelTemplate, CallsAndResultsGrowAsTheyAreRenderedAtOnceAndEndInItsToken) {
  for (const ordered_json& one : recorded_.at("cases")) {
    const auto all = recorded_messages(one.at("messages"));
    const auto calling = std::ranges::find_if(all, [](const Message& message) { return !message.tool_calls.empty(); });
    if (calling == all.end() || one.contains("chat")) continue;
    const auto tools = recorded_tools(one);
    const auto at = static_cast<std::size_t>(calling - all.begin());
    SpannedTokens grown = chat_.render_opening(std::span(all).first(at), "", tools);
    const auto said = chat_.spoken_calls(all[at].content, all[at].tool_calls, "");
    grown.tokens.insert(grown.tokens.end(), said.begin(), said.end());
    const TokenId end = chat_.stop_tokens()[0];
    EXPECT_EQ(tokenizer().bytes_of(end), GetParam().message_end ? GetParam().message_end : GetParam().tokens[0]);
    grown.tokens.push_back(end);
    append(grown, chat_.render_reply(std::span(all).subspan(at + 1), "", true));
    EXPECT_EQ(grown.tokens, chat_.render_opening(all, "", tools).tokens) << one.at("name");
  }
}

TEST_P(ModelTemplate, MarksOfCallsAreTokensInAFormAndTextInAnArgument) {
  const auto controls = [&](const std::vector<TokenId>& tokens) {
    std::vector<TokenId> found;
    for (const TokenId id : tokens)
      if (tokenizer().is_control(id)) found.push_back(id);
    return found;
  };
  std::string hostile = "a";
  for (const std::string& token : GetParam().tokens) hostile += token + " b";
  const auto calls = [](const std::string& word) {
    return std::vector<ToolCall>{
        {.name = "look_up", .arguments = ordered_json{{"word", word}}.dump(), .id = "abcdef123"}};
  };
  const auto said = chat_.spoken_calls("", calls(hostile), "");
  EXPECT_EQ(controls(said), controls(chat_.spoken_calls("", calls("a"), "")));
  const auto opening = [&](const std::string& word) {
    const std::vector<Message> messages = {{.role = "system", .content = "S"},
                                           {.role = "user", .content = "Hi"},
                                           {.role = "assistant", .tool_calls = calls(word)},
                                           {.role = "tool", .content = word, .tool_call_id = "abcdef123"}};
    return chat_.render_opening(messages, "").tokens;
  };
  EXPECT_EQ(controls(opening(hostile)), controls(opening("a")));
  EXPECT_THAT(tokenizer().decode(opening(hostile)), ::testing::HasSubstr(tokenizer().decode(said)));
}

TEST_P(ModelTemplate, ThinkingIsSwitchedWhereTheTemplateCan) {
  const bool can = GetParam().name == "smollm3" || GetParam().name == "granite3.3";
  for (const std::string_view name : {"template_think", "template_no_think"}) {
    const auto chat = start(name);
    ASSERT_EQ(chat.ok(), can) << GetParam().name;
    if (can) {
      EXPECT_EQ((*chat)->name(), name);
      EXPECT_TRUE((*chat)->takes_tools());
      EXPECT_TRUE(check_append_only(**chat).ok());
    } else {
      EXPECT_EQ(chat.error().message,
                "the template cannot switch thinking: it minds neither enable_thinking nor thinking");
    }
  }
}

}  // namespace
}  // namespace carnot
