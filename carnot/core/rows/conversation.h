// rows/conversation.h -- a row that demonstrates a conversation: `messages`, or `prompt` and `completion`.
//
//   {"messages": [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}], "tools": [...]}
//   {"prompt": "2+2?", "completion": "4"}
//   {"prompt": [{"role": "user", "content": "2+2?"}], "completion": [{"role": "assistant", "content": "4"}]}
//
// Messages are OpenAI's: roles system, user, assistant and tool; `content` is a string or a list of text parts;
// `tool_calls` of the assistant, whose arguments are an object or its text; `tool_call_id` of a result. What is null
// counts as absent. In CSV, `messages` and `tools` are JSON texts.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "carnot/core/data/message.h"

namespace carnot {

struct Conversation {
  std::vector<Message> messages{};
  std::vector<std::string> tools{};  ///< JSON texts, as text/chat.h takes them
  /// By message: what SFT learns to say. Of `messages` every assistant message without "weight": 0; of a prompt and a
  /// completion those of the completion.
  std::vector<bool> is_learnt{};

  /// The number of messages if nothing is learnt.
  std::size_t first_learnt() const;
};

/// Reads a row. Where it is no such conversation, adds to `problems` all that is wrong, each beginning with `where`,
/// and returns nothing. What is returned ends with an assistant message that is learnt, and has another than the
/// system's before the first of those.
std::optional<Conversation> read_conversation(const nlohmann::ordered_json& row, const std::string& where,
                                              std::vector<std::string>& problems);

}  // namespace carnot
