#include "carnot/core/text/template_chat.h"

#include <algorithm>

#include "carnot/core/base/strings.h"
#include "carnot/core/base/utf8.h"
#include "carnot/core/text/spaced_json.h"

namespace carnot {
namespace {

const Message kQuestion{.role = "user", .content = "Which way is north?"};
const Message kAnswer{.role = "assistant", .content = "Up, I think."};
const Message kFollowUp{.role = "user", .content = "Are you sure?"};
const std::string kThought = "<think>\nThe moss is on this side.\n</think>\n\n";

const std::string kProbedTool =
    R"({"type": "function", "function": {"name": "carnot_probe", "description": "Finds a word.", "parameters": )"
    R"({"type": "object", "properties": {"word": {"type": "string", "description": "what to find"}, )"
    R"("exact": {"type": "boolean", "description": "whether as it is spelled"}}, )"
    R"("required": ["word"]}}})";
constexpr const char* kProbedName = "carnot_probe";
constexpr const char* kProbedId = "abcdef123";  // Mistral's templates want nine letters

ToolCall probed_call(const std::string& id) {
  return {.name = kProbedName, .arguments = R"({"word": "north", "exact": true})", .id = id.empty() ? kProbedId : id};
}

std::size_t count(std::string_view text, std::string_view word) {
  std::size_t found = 0;
  for (auto at = text.find(word); at != std::string_view::npos; at = text.find(word, at + word.size())) ++found;
  return found;
}

/// What is before the messages of a reply: a question, and the assistant's answer or the calls that its leading
/// results belong to.
TemplateInput before_reply(std::span<const Message> messages) {
  TemplateInput input{.messages = {kQuestion, kAnswer}, .assistant_is_next = true};
  for (const Message& message : messages) {
    if (message.role != "tool") break;
    input.messages[1].content.clear();
    input.messages[1].tool_calls.push_back(probed_call(message.tool_call_id));
    input.tools = {kProbedTool};
  }
  input.messages.insert(input.messages.end(), messages.begin(), messages.end());
  return input;
}

const ContentRange* content_of(const MarkedRendering& rendering, std::size_t message) {
  for (const ContentRange& range : rendering.contents)
    if (range.message == message) return &range;
  return nullptr;
}

std::vector<std::string> token_texts(const Tokenizer& tokenizer, const auto& counts) {
  std::vector<std::string> texts;
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id)
    if (tokenizer.has(id) && counts(id)) texts.emplace_back(tokenizer.bytes_of(id));
  return texts;
}

std::vector<std::string> control_texts(const Tokenizer& tokenizer) {
  return token_texts(tokenizer, [&](TokenId id) { return tokenizer.is_control(id); });
}

std::string joined(std::span<const CallText> calls) {
  std::string text;
  for (const CallText& one : calls) text += one.text;
  return text;
}

/// Finds the calls of a message behind byte `from`; they are then its content, with the form's marks. A template that
/// changes them leaves nothing to find.
void take_calls(MarkedRendering& rendering, std::span<const CallText> calls, std::size_t message, std::size_t from) {
  const std::string body = joined(calls);
  std::size_t at = rendering.text.find(body, from);
  if (at == std::string::npos) return;
  std::erase_if(rendering.contents, [&](const ContentRange& range) { return range.message == message; });
  ContentRange range{.begin = at, .end = at + body.size(), .message = message};
  for (const CallText& one : calls) {
    if (one.of_format) range.of_format.push_back({.begin = at, .end = at + one.text.size()});
    at += one.text.size();
  }
  rendering.contents.push_back(std::move(range));
}

/// The added token that the text begins with.
std::optional<TokenId> leading_token(const Tokenizer& tokenizer, std::string_view text) {
  const auto tokens = tokenizer.try_encode(text);
  if (!tokens || tokens->empty() || !tokenizer.is_added(tokens->front())) return std::nullopt;
  return tokens->front();
}

}  // namespace

TemplateChat::TemplateChat(std::unique_ptr<TemplateRenderer> renderer, const Tokenizer& tokenizer,
                           std::optional<bool> thinking)
    : ChatFamily(tokenizer), renderer_(std::move(renderer)), marks_(control_texts(tokenizer)), thinking_(thinking) {}

std::optional<bool> TemplateChat::thinking_of(std::string_view name) {
  if (name == kNames[1] || name == kNames[2]) return name == kNames[1];
  return std::nullopt;
}

Result<std::unique_ptr<TemplateChat>> TemplateChat::start(const ChatTemplate& chat, const Tokenizer& tokenizer,
                                                          const TemplateRendererOptions& options) {
  CARNOT_ASSIGN_OR_RETURN(auto renderer, TemplateRenderer::start(chat, options));
  std::unique_ptr<TemplateChat> made(new TemplateChat(std::move(renderer), tokenizer, chat.thinking));
  CARNOT_RETURN_IF_ERROR(made->learn(chat));
  return made;
}

// ---- what the template does

Status TemplateChat::learn(const ChatTemplate& chat) {
  CARNOT_RETURN_IF_ERROR(learn_messages());
  CARNOT_RETURN_IF_ERROR(check_thinking());
  const auto eos = chat.tokens.find("eos_token");
  const auto id = eos == chat.tokens.end() ? std::nullopt : tokenizer().id_of(eos->second);
  if (id && tokenizer().is_added(*id) && std::find(stops_.begin(), stops_.end(), *id) == stops_.end())
    stops_.push_back(*id);
  learn_rewriting();
  const auto offer = learn_offer();
  Status tools = offer ? learn_form(*offer) : Status(offer.error());
  if (tools) tools = try_tools();
  if (tools) return Done{};
  form_ = nullptr;
  no_tools_because_ = tools.error().message;
  return Done{};
}

Status TemplateChat::check_thinking() const {
  if (!thinking_) return Done{};
  TemplateInput asked{.messages = {kQuestion}, .assistant_is_next = true, .thinking = true};
  const auto thinks = render(asked);
  asked.thinking = false;
  const auto does_not = render(asked);
  if (thinks && does_not && thinks->text == does_not->text)
    return Error{"the template cannot switch thinking: it minds neither enable_thinking nor thinking"};
  return Done{};
}

Status TemplateChat::learn_messages() {
  const auto asked = render({.messages = {kQuestion}, .assistant_is_next = true});
  if (!asked) return Error{"a conversation of one user message: " + asked.error().message};
  const auto tokens = tokenizer().try_encode(asked->text);
  head_ends_in_token_ = tokens && !tokens->empty() && tokenizer().is_added(tokens->back());

  const auto grown = render({.messages = {kQuestion, kAnswer, kFollowUp}, .assistant_is_next = true});
  const ContentRange* answer = grown ? content_of(*grown, 1) : nullptr;
  if (answer == nullptr) {
    rewriting_.push_back("does not write what the assistant said before" +
                         (grown ? std::string() : " (" + grown.error().message + ")"));
    return Done{};
  }
  const std::string head = grown->text.substr(0, answer->begin);
  if (head.starts_with(asked->text))
    before_speech_ = head.substr(asked->text.size());
  else
    rewriting_.push_back("begins earlier assistant messages in another way than the one that comes next");
  learn_end(*grown);
  return Done{};
}

/// What follows the answer in `grown`: blanks and a token, where the template ends a message with one.
void TemplateChat::learn_end(const MarkedRendering& grown) {
  const std::string_view after = std::string_view(grown.text).substr(content_of(grown, 1)->end);
  const std::size_t blanks = std::min(after.find_first_not_of(" \n"), after.size());
  const auto end = leading_token(tokenizer(), after.substr(blanks));
  if (!end) return;
  after_speech_ = after.substr(0, blanks);
  end_ = tokenizer().bytes_of(*end);
  stops_.push_back(*end);
}

void TemplateChat::learn_rewriting() {
  const Message thoughtful{.role = "assistant", .content = kThought + kAnswer.content};
  if (const auto grown = render({.messages = {kQuestion, thoughtful, kFollowUp}, .assistant_is_next = true});
      grown && grown->text.find(kThought) == std::string::npos &&
      grown->text.find(kAnswer.content) != std::string::npos)
    rewriting_.push_back("drops the thinking of earlier assistant messages");

  const Message blank{.role = "assistant", .content = " " + kAnswer.content + " "};
  if (const auto grown = render({.messages = {kQuestion, blank, kFollowUp}, .assistant_is_next = true});
      grown && grown->text.find(before_speech_ + blank.content + after_speech_) == std::string::npos)
    rewriting_.push_back("trims what the assistant said");

  const Message system{.role = "system", .content = "Be brief."};
  const auto opened = render({.messages = {system, kQuestion}, .assistant_is_next = true});
  if (!opened) system_refusal_ = opened.error().message;
  if (!opened) return;
  if (opened->text.find(system.content) == std::string::npos) rewriting_.push_back("leaves out system messages");
  const auto grown = render({.messages = {system, kQuestion, kAnswer, kFollowUp}, .assistant_is_next = true});
  const std::size_t at = grown ? grown->text.find(system.content) : std::string::npos;
  if (at != std::string::npos && at > grown->text.find(kAnswer.content))
    rewriting_.push_back("moves the system message to the last user message");
}

/// What the template renders of a question where a function is offered.
Result<std::string> TemplateChat::learn_offer() {
  for (const bool in_system : {false, true}) {
    tools_in_system_ = in_system;
    const auto offer = render({.messages = {kQuestion}, .tools = {kProbedTool}, .assistant_is_next = true});
    if (!offer && !in_system) return offer.error();
    if (offer && offer->text.find(kProbedName) != std::string::npos) return offer->text;
  }
  return Error{"the template does not write tools"};
}

Status TemplateChat::learn_form(const std::string& offer) {
  const Message calling{.role = "assistant", .tool_calls = {probed_call(kProbedId)}};
  const auto called = render({.messages = {kQuestion, calling}, .tools = {kProbedTool}});
  if (!called) return called.error();
  for (const ToolCallForm* form : tool_call_forms()) {
    const std::string written = form->text_of("", calling.tool_calls);
    if (called->text.find(written) == std::string::npos || offer.find(written) != std::string::npos) continue;
    form_ = form;
    return Done{};
  }
  if (count(called->text, kProbedName) > count(offer, kProbedName))
    return Error{"the template writes calls in a form that is not known"};
  const auto is_added = [&](TokenId id) { return tokenizer().is_added(id); };
  form_ = form_asked_for(offer, token_texts(tokenizer(), is_added));
  if (form_ == nullptr) return Error{"the template does not write calls, and asks for them in no form that is known"};
  calls_are_content_ = true;
  return Done{};
}

/// A call and its result, as a rollout makes them and as the template renders them at once.
Status TemplateChat::try_tools() const {
  if (stops_.empty()) return Error{"no token ends an assistant message"};
  const std::vector<Message> all = {
      kQuestion,
      {.role = "assistant", .tool_calls = {probed_call(kProbedId)}},
      {.role = "tool", .content = "two steps up", .tool_call_id = kProbedId},
  };
  const Tools tools(&kProbedTool, 1);
  const auto messages = std::span(all);
  const auto at_once = try_render_opening(messages, "", tools);
  const auto opening = try_render_opening(messages.first(1), "", tools);
  const auto said = try_spoken_calls("", all[1].tool_calls, "");
  const auto reply = try_render_reply(messages.last(1), "", true);
  for (const auto* rendered : {&at_once, &opening, &reply})
    if (!*rendered) return rendered->error();
  if (!said) return said.error();
  const std::string shown = tokenizer().decode(reply->tokens);
  if (shown.find(all[2].content) == std::string::npos) return Error{"the template leaves out what a function returned"};
  const std::string grown = tokenizer().decode(opening->tokens) + tokenizer().decode(*said) +
                            std::string(tokenizer().bytes_of(stops_[0])) + shown;
  if (grown != tokenizer().decode(at_once->tokens))
    return Error{"the template renders a call and its result in another way when both are history"};
  return Done{};
}

// ---- rendering

/// How the message stands in a prompt, if it has calls that the form can write.
std::vector<CallText> TemplateChat::written_calls(const Message& message) const {
  const std::size_t count = message.tool_calls.size();
  if (form_ == nullptr || count == 0 || (count > 1 && form_->has_one_call())) return {};
  return form_->written(message.content, message.tool_calls);
}

Result<MarkedRendering> TemplateChat::render(const TemplateInput& input) const {
  const bool hides = control_tokens_in_contents() == ControlTokens::Text;
  TemplateInput given = marks_->hidden(input, hides);
  given.tools_in_system = tools_in_system_;
  if (!given.thinking) given.thinking = thinking_;
  std::vector<std::vector<CallText>> calls;
  for (Message& message : given.messages) {
    calls.push_back(written_calls(message));
    if (calls.back().empty() || !calls_are_content_) continue;
    message.content = joined(calls.back());
    message.tool_calls.clear();
  }
  auto rendering = marks_->render(*renderer_, given);
  if (!rendering) return rendering;
  // Calls count as what the assistant said.
  std::size_t from = 0;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (!calls[i].empty()) take_calls(*rendering, calls[i], i, from);
    if (const ContentRange* range = content_of(*rendering, i)) from = std::max(from, range->end);
  }
  std::sort(rendering->contents.begin(), rendering->contents.end(),
            [](const ContentRange& a, const ContentRange& b) { return a.begin < b.begin; });
  return rendering;
}

/// The rendering from byte `begin` on.
void TemplateChat::add_range(LabelledText& text, const MarkedRendering& rendering, std::size_t begin,
                             SpanKind content_kind) const {
  const std::string_view all = rendering.text;
  const auto add_template = [&](std::size_t end) {
    for (const TemplateMarks::Piece& piece : marks_->revealed(all.substr(begin, end - begin)))
      piece.was_hidden ? text.add_content(SpanKind::Template, piece.text) : text.add(SpanKind::Template, piece.text);
    begin = end;
  };
  const auto add_said = [&](std::size_t end) {
    std::string content;
    for (const TemplateMarks::Piece& piece : marks_->revealed(all.substr(begin, end - begin))) content += piece.text;
    text.add_content(content_kind, content);
    begin = end;
  };
  for (const ContentRange& range : rendering.contents) {
    if (range.begin < begin) continue;
    add_template(range.begin);
    for (const TextRange& mark : range.of_format) {
      add_said(mark.begin);
      add_template(mark.end);
    }
    add_said(range.end);
  }
  add_template(all.size());
}

Status TemplateChat::write_opening(LabelledText& text, std::span<const Message> messages, Tools tools) const {
  CARNOT_ASSIGN_OR_RETURN(const auto rendering, render({.messages = {messages.begin(), messages.end()},
                                                        .tools = {tools.begin(), tools.end()},
                                                        .assistant_is_next = true}));
  add_range(text, rendering, 0, SpanKind::Prompt);
  return Done{};
}

Status TemplateChat::write_reply(LabelledText& text, std::span<const Message> messages, bool closed) const {
  CARNOT_ASSIGN_OR_RETURN(const auto rendering, render(before_reply(messages)));
  const ContentRange* said = content_of(rendering, 1);
  if (said == nullptr) return Error{"the template does not write what the assistant said before"};
  std::string_view rest = std::string_view(rendering.text).substr(said->end);
  if (rest.starts_with(after_speech_)) rest.remove_prefix(after_speech_.size());
  if (closed && rest.starts_with(end_)) rest.remove_prefix(end_.size());
  add_range(text, rendering, rendering.text.size() - rest.size(), SpanKind::Observation);
  return Done{};
}

std::vector<TokenId> TemplateChat::own_stop_tokens() const { return stops_; }

Status TemplateChat::check_places(std::span<const Message> messages, Tools) const {
  for (const Message& message : messages) {
    if (message.role == "system" && !system_refusal_.empty())
      return Error{"the model's chat template takes no system message: " + system_refusal_};
    if (message.tool_calls.size() > 1 && form_ != nullptr && form_->has_one_call())
      return Error{"the model's chat template has one tool call in a message, not several"};
  }
  return Done{};
}

}  // namespace carnot
