#include "carnot/core/text/chat.h"

#include <algorithm>

#include "carnot/core/base/check.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/text/chat_families.h"

namespace carnot {
namespace {

/// Where two renderings part, in words; empty if they are equal.
std::string difference(const Tokenizer& tokenizer, std::span<const TokenId> a, std::span<const TokenId> b) {
  const auto [in_a, in_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (in_a == a.end() && in_b == b.end()) return {};
  const auto next = [&](auto from, auto end) {
    return from == end ? std::string("nothing") : "'" + std::string(tokenizer.bytes_of(*from)) + "'";
  };
  return "at token " + std::to_string(in_a - a.begin()) + ", after '" + tokenizer.decode({a.begin(), in_a}) +
         "': " + next(in_a, a.end()) + " and " + next(in_b, b.end());
}

/// A conversation with the borders that matter: blanks, line ends, digits and letters beyond ASCII next to a tag.
const std::vector<Message>& sample_conversation() {
  static const std::vector<Message> kConversation = {
      {.role = "system", .content = "You are a careful agent."},
      {.role = "user", .content = " Board:\n#__P\n\n 3 moves left, café "},
      {.role = "assistant", .content = "<think>Up is free.</think><answer>Up || Left</answer>"},
      {.role = "user", .content = "\nReward: -0.1\n你好 "},
  };
  return kConversation;
}

Status check_text_comes_back(const ChatFamily& chat) {
  for (const Message& message : sample_conversation()) {
    const auto rendered = chat.try_render_inline(message.content);
    if (!rendered) return Error{std::string(chat.name()) + ": " + rendered.error().message};
    const std::string back = chat.tokenizer().decode(rendered->tokens);
    if (back != message.content)
      return Error{std::string(chat.name()) + ": '" + message.content + "' comes back as '" + back + "'"};
  }
  return Done{};
}

/// An opening, what is said then, and a reply; `closed`: its message ended in the usual stop token.
Result<std::vector<TokenId>> turn_by_turn(const ChatFamily& chat, std::span<const Message> messages, bool closed) {
  CARNOT_ASSIGN_OR_RETURN(auto opening, chat.try_render_opening(messages.first(messages.size() - 2), ""));
  CARNOT_ASSIGN_OR_RETURN(const auto said, chat.try_spoken(messages[messages.size() - 2].content, "", true));
  CARNOT_ASSIGN_OR_RETURN(const auto reply, chat.try_render_reply(messages.last(1), "", closed));
  std::vector<TokenId> tokens = std::move(opening.tokens);
  tokens.insert(tokens.end(), said.begin(), said.end());
  if (closed) tokens.push_back(chat.stop_tokens()[0]);
  tokens.insert(tokens.end(), reply.tokens.begin(), reply.tokens.end());
  return tokens;
}

Status check_growth(const ChatFamily& chat) {
  CARNOT_RETURN_IF_ERROR(check_text_comes_back(chat));
  const std::string name(chat.name());
  if (chat.stop_tokens().empty())
    return Error{name + ": no token ends an assistant message; expected one that the format writes, or an eos_token"};
  std::span<const Message> messages = sample_conversation();
  if (!chat.check_writable(messages)) messages = messages.subspan(1);  // formats without a system message
  const auto at_once = chat.try_render_opening(messages, "");
  if (!at_once) return Error{name + ": " + at_once.error().message};
  const Tokenizer& tokenizer = chat.tokenizer();
  for (const bool closed : {true, false}) {
    const auto turns = turn_by_turn(chat, messages, closed);
    if (!turns) return Error{name + ": " + turns.error().message};
    if (const auto where = difference(tokenizer, *turns, at_once->tokens); !where.empty())
      return Error{name + ": rendered turn by turn and at once differ " + where};
  }
  if (tokenizer.puts_blanks()) return Done{};
  const auto again = tokenizer.try_encode(tokenizer.decode(at_once->tokens));
  if (!again) return Error{name + ": " + again.error().message};
  if (const auto where = difference(tokenizer, at_once->tokens, *again); !where.empty())
    return Error{name + ": tokens and the tokens of their text differ " + where};
  return Done{};
}

/// A format that this tokenizer can write and that offers tools, without a system message that names another model.
std::string other_format(const Tokenizer& tokenizer) {
  for (const std::string_view name : {"qwen3", "mistral_nemo"})
    if (make_chat_family(name, tokenizer))
      return std::string(name) + " has one, in a recipe tokenizer.chat=" + std::string(name) +
             " (`carnot list chats` prints all)";
  return "no format that has one fits this tokenizer (`carnot list chats` prints all)";
}

}  // namespace

Result<SpannedTokens> ChatFamily::try_render_opening(std::span<const Message> messages, std::string_view prefix,
                                                     Tools tools) const {
  CARNOT_CHECK(tools.empty() || takes_tools(), std::string(name()) + " has no way to offer functions");
  LabelledText text(*tokenizer_, in_contents_);
  CARNOT_RETURN_IF_ERROR(write_opening(text, messages, tools));
  write_prefix(text, prefix);
  return text.tokenize(TextBefore::Nothing);
}

Result<SpannedTokens> ChatFamily::try_render_reply(std::span<const Message> messages, std::string_view prefix,
                                                   bool closed) const {
  LabelledText text(*tokenizer_, in_contents_);
  CARNOT_RETURN_IF_ERROR(write_reply(text, messages, closed));
  write_prefix(text, prefix);
  return text.tokenize(TextBefore::AddedToken);
}

void ChatFamily::write_prefix(LabelledText& text, std::string_view prefix) const {
  if (prefix.empty()) return;
  text.add(SpanKind::Template, before_speech());
  text.add_format(SpanKind::Prompt, prefix);
}

PolicyResponse ChatFamily::parse_response(std::string text, Tools tools) const {
  PolicyResponse response(std::move(text));
  if (!takes_tools()) return response;
  auto calls = call_form()->parse(response.text, tools);
  if (calls)
    response.tool_calls = std::move(calls).value();
  else
    response.problem = calls.error().message;
  return response;
}

std::string_view ChatFamily::text_beside_calls(std::string_view text) const {
  return takes_tools() ? call_form()->beside(text) : text;
}

Status ChatFamily::check_takes_tools() const {
  if (takes_tools()) return Done{};
  const std::string why = no_tools_because();
  return Error{"chat format " + std::string(name()) + " has no way to offer tools" + (why.empty() ? "" : ": " + why) +
               "; " + other_format(*tokenizer_)};
}

Status ChatFamily::check_writable(std::span<const Message> messages, Tools tools) const {
  if (!tools.empty()) CARNOT_RETURN_IF_ERROR(check_takes_tools());
  for (const Message& message : messages) {
    const std::string& role = message.role;
    if (role != "system" && role != "user" && role != "assistant" && role != "tool")
      return Error{"role '" + role + "': expected system, user, assistant or tool"};
    if (!message.tool_calls.empty() && !takes_tools())
      return Error{"chat format " + std::string(name()) + " has no way to write tool calls"};
  }
  return check_places(messages, tools);
}

Result<SpannedTokens> ChatFamily::try_render_inline(std::string_view text) const {
  CARNOT_ASSIGN_OR_RETURN(auto tokens, content_tokens(text, TextBefore::Text));
  SpannedTokens result{.tokens = std::move(tokens)};
  extend_spans(result.spans, SpanKind::Observation, static_cast<int>(result.tokens.size()));
  return result;
}

Result<std::vector<TokenId>> ChatFamily::try_spoken(std::string_view content, std::string_view prefix,
                                                    bool ends) const {
  std::string text(prefix.empty() ? before_speech() : std::string_view());
  text.append(prefix.empty() ? as_said(content) : content);
  if (ends) text.append(after_speech());
  CARNOT_ASSIGN_OR_RETURN(const auto before, before_response(prefix));
  return content_tokens(text, before);
}

Result<std::vector<TokenId>> ChatFamily::try_spoken_calls(std::string_view content, std::span<const ToolCall> calls,
                                                          std::string_view prefix) const {
  CARNOT_CHECK(takes_tools(), std::string(name()) + " has no way to call functions");
  LabelledText text(*tokenizer_, in_contents_);
  call_form()->write(text, prefix.empty() ? as_said(content) : content, calls, SpanKind::Prompt);
  CARNOT_ASSIGN_OR_RETURN(const auto before, before_response(prefix));
  CARNOT_ASSIGN_OR_RETURN(auto spoken, text.tokenize(before));
  return std::move(spoken.tokens);
}

Result<TextBefore> ChatFamily::before_response(std::string_view prefix) const {
  CARNOT_ASSIGN_OR_RETURN(const auto before, tokenizer_->try_encode(prefix));
  const bool behind_token = before.empty() ? head_ends_in_token() : tokenizer_->is_added(before.back());
  return behind_token ? TextBefore::AddedToken : TextBefore::Text;
}

Result<std::vector<TokenId>> ChatFamily::content_tokens(std::string_view text, TextBefore before) const {
  return in_contents_ == ControlTokens::Text ? tokenizer_->try_encode_content(text, before)
                                             : tokenizer_->try_encode(text, before);
}

std::vector<TokenId> ChatFamily::stop_tokens() const {
  std::vector<TokenId> all = own_stop_tokens();
  for (const TokenId id : further_stops_)
    if (std::find(all.begin(), all.end(), id) == all.end()) all.push_back(id);
  return all;
}

void ChatFamily::also_stop_at(std::span<const TokenId> tokens) {
  for (const TokenId id : tokens)
    if (tokenizer_->has(id)) further_stops_.push_back(id);
}

std::vector<TokenId> ChatFamily::present_tokens(std::initializer_list<std::string_view> names) const {
  std::vector<TokenId> present;
  for (const std::string_view name : names)
    if (const auto id = tokenizer_->id_of(name); id && tokenizer_->is_added(*id)) present.push_back(*id);
  CARNOT_CHECK(!present.empty(), std::string(*names.begin()) + " is not an added token");
  return present;
}

Status check_append_only(const ChatFamily& chat) {
  Status status = check_growth(chat);
  if (status || chat.rewriting().empty()) return status;
  return Error{status.error().message + "; its template " + join(chat.rewriting(), "; it ")};
}

}  // namespace carnot
