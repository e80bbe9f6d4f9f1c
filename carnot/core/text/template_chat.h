// text/template_chat.h -- the chat format of a model whose template is not a known one (text/chat_families.h).
//
// An opening is what the template renders, to the byte. A reply is what the template adds behind an assistant message
// when further messages follow, so that nothing is rendered twice; check_append_only() says whether the two make one
// conversation.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/text/chat.h"
#include "carnot/core/text/template_marks.h"
#include "carnot/core/text/template_renderer.h"

namespace carnot {

class TemplateChat final : public ChatFamily {
 public:
  /// The names in `tokenizer.chat` and `--chat`: thinking as the template has it by itself, on, and off.
  static constexpr std::string_view kNames[] = {"template", "template_think", "template_no_think"};
  static constexpr std::string_view kName = kNames[0];
  static bool is_name(std::string_view name) { return std::ranges::find(kNames, name) != std::end(kNames); }
  /// What a template is told under that name.
  static std::optional<bool> thinking_of(std::string_view name);

  /// Starts the template's process and tries the template on small conversations: where the assistant's message begins
  /// and ends, which token ends it, whether there may be system messages, how functions are called. Fails if it
  /// cannot render a user's message, or is told whether to think and does not mind. The tokenizer must outlive it.
  static Result<std::unique_ptr<TemplateChat>> start(const ChatTemplate& chat, const Tokenizer& tokenizer,
                                                     const TemplateRendererOptions& options = {});

  std::string_view name() const override { return kNames[!thinking_ ? 0 : *thinking_ ? 1 : 2]; }
  std::vector<std::string> rewriting() const override { return rewriting_; }

 private:
  TemplateChat(std::unique_ptr<TemplateRenderer> renderer, const Tokenizer& tokenizer, std::optional<bool> thinking);

  Status write_opening(LabelledText& text, std::span<const Message> messages, Tools tools) const override;
  Status write_reply(LabelledText& text, std::span<const Message> messages, bool closed) const override;
  std::vector<TokenId> own_stop_tokens() const override;
  const ToolCallForm* call_form() const override { return form_; }
  std::string no_tools_because() const override { return no_tools_because_; }
  Status check_places(std::span<const Message> messages, Tools tools) const override;
  std::string_view before_speech() const override { return before_speech_; }
  std::string_view after_speech() const override { return after_speech_; }
  bool head_ends_in_token() const override { return head_ends_in_token_; }

  Result<MarkedRendering> render(const TemplateInput& input) const;
  std::vector<CallText> written_calls(const Message& message) const;
  void add_range(LabelledText& text, const MarkedRendering& rendering, std::size_t begin, SpanKind content_kind) const;

  Status learn(const ChatTemplate& chat);
  Status learn_messages();
  void learn_end(const MarkedRendering& grown);
  void learn_rewriting();
  Status check_thinking() const;
  Result<std::string> learn_offer();
  Status learn_form(const std::string& offer);
  Status try_tools() const;

  std::unique_ptr<TemplateRenderer> renderer_;
  std::optional<TemplateMarks> marks_;
  std::string before_speech_{}, after_speech_{}, end_{};  // around what the assistant says
  bool head_ends_in_token_ = false;
  std::vector<TokenId> stops_{};
  std::string system_refusal_{};  // what the template says of system messages; empty if it takes them
  std::vector<std::string> rewriting_{};
  std::optional<bool> thinking_{};
  bool tools_in_system_ = false;
  const ToolCallForm* form_ = nullptr;
  bool calls_are_content_ = false;  // the template offers functions, and knows no calls
  std::string no_tools_because_{};
};

}  // namespace carnot
