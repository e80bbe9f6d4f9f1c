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
    R"({"type": "object", "properties": {"word": {"type": "string", "description": "what to find"}}, )"
    R"("required": ["word"]}}})";
constexpr const char* kProbedId = "abcdef123";  // Mistral's templates want nine letters

ToolCall probed_call(const std::string& id) {
  return {.name = "carnot_probe", .arguments = R"({"word": "north"})", .id = id.empty() ? kProbedId : id};
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

std::vector<std::string> control_texts(const Tokenizer& tokenizer) {
  std::vector<std::string> texts;
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id)
    if (tokenizer.has(id) && tokenizer.is_control(id)) texts.emplace_back(tokenizer.bytes_of(id));
  return texts;
}

/// The added token that the text begins with.
std::optional<TokenId> leading_token(const Tokenizer& tokenizer, std::string_view text) {
  const auto tokens = tokenizer.try_encode(text);
  if (!tokens || tokens->empty() || !tokenizer.is_added(tokens->front())) return std::nullopt;
  return tokens->front();
}

}  // namespace

TemplateChat::TemplateChat(std::unique_ptr<TemplateRenderer> renderer, const Tokenizer& tokenizer)
    : ChatFamily(tokenizer), renderer_(std::move(renderer)), marks_(control_texts(tokenizer)) {}

Result<std::unique_ptr<TemplateChat>> TemplateChat::start(const ChatTemplate& chat, const Tokenizer& tokenizer,
                                                          const TemplateRendererOptions& options) {
  CARNOT_ASSIGN_OR_RETURN(auto renderer, TemplateRenderer::start(chat, options));
  std::unique_ptr<TemplateChat> made(new TemplateChat(std::move(renderer), tokenizer));
  CARNOT_RETURN_IF_ERROR(made->learn(chat));
  return made;
}

// ---- what the template does

Status TemplateChat::learn(const ChatTemplate& chat) {
  CARNOT_RETURN_IF_ERROR(learn_messages());
  const auto eos = chat.tokens.find("eos_token");
  const auto id = eos == chat.tokens.end() ? std::nullopt : tokenizer().id_of(eos->second);
  if (id && tokenizer().is_added(*id) && std::find(stops_.begin(), stops_.end(), *id) == stops_.end())
    stops_.push_back(*id);
  learn_rewriting();
  learn_tools();
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

void TemplateChat::learn_tools() {
  TemplateInput offered{.messages = {kQuestion}, .tools = {kProbedTool}, .assistant_is_next = true};
  const auto offer = render(offered);
  if (!offer || offer->text.find("carnot_probe") == std::string::npos) {
    no_tools_because_ = offer ? "the template does not write tools" : offer.error().message;
    return;
  }
  offered.messages.push_back({.role = "assistant", .tool_calls = {probed_call(kProbedId)}});
  offered.assistant_is_next = false;
  const auto called = render(offered);
  if (!called) {
    no_tools_because_ = called.error().message;
    return;
  }
  for (const ToolCallForm* form : tool_call_forms())
    if (const std::string written = form->head() + form->written("", offered.messages[1].tool_calls);
        called->text.find(written) != std::string::npos && offer->text.find(written) == std::string::npos)
      form_ = form;
  if (form_ == nullptr) no_tools_because_ = "the template writes calls in a form that is not known";
  if (form_ == nullptr) return;
  if (const Status sound = try_tools(); !sound) {
    form_ = nullptr;
    no_tools_because_ = sound.error().message;
  }
}

/// A call and its result, as a rollout makes them and as the template renders them at once.
Status TemplateChat::try_tools() {
  if (stops_.empty()) return Error{"no token ends an assistant message"};
  const std::vector<Message> all = {
      kQuestion,
      {.role = "assistant", .tool_calls = {probed_call(kProbedId)}},
      {.role = "tool", .content = "up", .tool_call_id = kProbedId},
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
  const std::string grown = tokenizer().decode(opening->tokens) + tokenizer().decode(*said) +
                            std::string(tokenizer().bytes_of(stops_[0])) + tokenizer().decode(reply->tokens);
  if (grown != tokenizer().decode(at_once->tokens))
    return Error{"the template renders a call and its result in another way when both are history"};
  return Done{};
}

// ---- rendering

Result<MarkedRendering> TemplateChat::render(const TemplateInput& input) const {
  const bool hides = control_tokens_in_contents() == ControlTokens::Text;
  const TemplateInput given = marks_->hidden(input, hides);
  auto rendering = marks_->render(*renderer_, given);
  if (!rendering || form_ == nullptr) return rendering;
  // Calls count as what the assistant said.
  std::size_t from = 0;
  for (std::size_t i = 0; i < given.messages.size(); ++i) {
    const Message& message = given.messages[i];
    if (!message.tool_calls.empty() && (message.tool_calls.size() == 1 || !form_->has_one_call())) {
      const std::string head = form_->head(), body = form_->written(message.content, message.tool_calls);
      const auto at = rendering->text.find(head + body, from);
      if (at == std::string::npos) continue;
      std::erase_if(rendering->contents, [&](const ContentRange& range) { return range.message == i; });
      rendering->contents.push_back({.begin = at + head.size(), .end = at + head.size() + body.size(), .message = i});
    }
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
  for (const ContentRange& range : rendering.contents) {
    if (range.begin < begin) continue;
    add_template(range.begin);
    std::string content;
    for (const TemplateMarks::Piece& piece : marks_->revealed(all.substr(begin, range.end - begin)))
      content += piece.text;
    text.add_content(content_kind, content);
    begin = range.end;
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
