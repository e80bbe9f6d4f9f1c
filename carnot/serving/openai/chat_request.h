// serving/openai/chat_request.h -- a chat completion as it is requested, POST /v1/chat/completions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "carnot/core/data/message.h"

namespace carnot {

struct ChatQuestion {
  std::string model{};
  std::vector<Message> messages{};
  std::vector<std::string> tools{};  ///< JSON texts (ToolDescription::json())
  double temperature = 1;
  double top_p = 1;
  int max_tokens = 1024;
  std::vector<std::string> stop{};
  std::optional<std::uint64_t> seed{};  ///< below 2^63
};

/// Its JSON. Bytes that are not UTF-8 become U+FFFD. `extra`: members that change it (RFC 7396), an object or empty.
std::string chat_request(const ChatQuestion& question, const std::string& extra = "");

}  // namespace carnot
