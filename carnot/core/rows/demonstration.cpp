#include "carnot/core/rows/demonstration.h"

#include <algorithm>
#include <span>

#include "carnot/core/base/strings.h"
#include "carnot/core/base/utf8.h"

namespace carnot {
namespace {

constexpr std::size_t kShownBytes = 40;

void add(Demonstration& to, std::span<const TokenId> tokens, bool is_said) {
  to.tokens.insert(to.tokens.end(), tokens.begin(), tokens.end());
  to.is_said.insert(to.is_said.end(), tokens.size(), is_said);
}

/// Message by message, as text/chat.h's functions make a trajectory.
Result<Demonstration> grown(const ChatFamily& chat, const Conversation& conversation) {
  const std::span<const Message> messages = conversation.messages;
  const std::vector<TokenId> ends = chat.stop_tokens();
  if (ends.empty()) return Error{"no token of the chat format ends an assistant message; expected one"};
  Demonstration out;
  std::size_t begin = 0;  // of the messages that are not rendered yet
  for (std::size_t i = conversation.first_learnt(); i < messages.size(); ++i) {
    if (!conversation.is_learnt[i]) continue;
    const auto before = messages.subspan(begin, i - begin);
    CARNOT_ASSIGN_OR_RETURN(const auto shown, out.tokens.empty()
                                                  ? chat.try_render_opening(before, "", conversation.tools)
                                                  : chat.try_render_reply(before, "", true));
    add(out, shown.tokens, false);
    const Message& said = messages[i];
    CARNOT_ASSIGN_OR_RETURN(auto tokens, said.tool_calls.empty()
                                             ? chat.try_spoken(said.content, "", true)
                                             : chat.try_spoken_calls(said.content, said.tool_calls, ""));
    if (!said.content.empty() && !said.tool_calls.empty() &&
        chat.text_beside_calls(chat.tokenizer().decode(tokens)).empty())
      return Error{"chat format " + std::string(chat.name()) +
                   " writes no text next to tool calls; expected an empty content"};
    tokens.push_back(ends.front());
    add(out, tokens, true);
    begin = i + 1;
  }
  return out;
}

Conversation stripped_speech(Conversation conversation) {
  for (std::size_t i = 0; i < conversation.messages.size(); ++i)
    if (std::string& content = conversation.messages[i].content; conversation.is_learnt[i])
      content = std::string(stripped(content));
  return conversation;
}

/// Where the two part, with what is around.
std::string difference(std::string_view grown, std::string_view whole) {
  const auto at = static_cast<std::size_t>(std::ranges::mismatch(grown, whole).in1 - grown.begin());
  const std::size_t from = at - std::min(at, kShownBytes);
  const auto quoted = [](std::string_view text) { return "'" + std::string(text) + "'"; };
  return "after " + quoted(grown.substr(from, at - from)) + ": turn by turn " + quoted(grown.substr(at, kShownBytes)) +
         ", at once " + quoted(whole.substr(std::min(at, whole.size()), kShownBytes));
}

}  // namespace

std::vector<Demonstration> demonstrations_of(const Trajectory& trajectory) {
  const std::vector<TokenId> tokens = trajectory.tokens();
  const std::vector<bool> sampled = trajectory.sampled();
  std::vector<Demonstration> all;
  for (int k = 0; k < trajectory.num_turns(); ++k) {
    if (k == 0 || trajectory.turn(k).context == Context::Fresh) all.emplace_back();
    for (int t = trajectory.turn_offsets[k]; t < trajectory.turn_offsets[k + 1]; ++t) {
      all.back().tokens.push_back(tokens[t]);
      all.back().is_said.push_back(sampled[t]);
    }
  }
  std::erase_if(all,
                [](const Demonstration& one) { return std::ranges::find(one.is_said, true) == one.is_said.end(); });
  return all;
}

Result<Demonstration> render_demonstration(const ChatFamily& chat, const Conversation& conversation) {
  CARNOT_RETURN_IF_ERROR(chat.check_writable(conversation.messages, conversation.tools));
  CARNOT_ASSIGN_OR_RETURN(auto demonstration, grown(chat, conversation));
  CARNOT_ASSIGN_OR_RETURN(const auto at_once, chat.try_render_opening(conversation.messages, "", conversation.tools));
  const auto text_of = [&chat](const std::vector<TokenId>& tokens) { return chat.tokenizer().decode(tokens); };
  const std::string whole = text_of(at_once.tokens), text = text_of(demonstration.tokens);
  if (whole.starts_with(text)) return demonstration;
  CARNOT_ASSIGN_OR_RETURN(auto stripped, grown(chat, stripped_speech(conversation)));
  if (whole.starts_with(text_of(stripped.tokens))) return stripped;
  std::string why =
      "the chat format writes the conversation turn by turn in another way than at once, " + difference(text, whole);
  if (!chat.rewriting().empty()) why += "; its template " + join(chat.rewriting(), "; it ");
  return Error{why + "; expected messages of which it changes none when others follow"};
}

}  // namespace carnot
