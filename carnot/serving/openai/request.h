// serving/openai/request.h -- requests of OpenAI's API, POST /v1/chat/completions and /v1/completions, as plain
// structs.
//
// Every field is validated; all problems of a request are reported at once. A field that would change the answer and is
// not supported is refused, as is an unknown one; a null is a field that is not there. Beyond OpenAI's fields: `top_k`,
// `return_token_ids`, and `prompt` as token ids, as vLLM has them. docs/openai_server.md lists all of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "carnot/core/data/message.h"
#include "carnot/core/data/tokens.h"

namespace carnot {

/// Texts that one request may ask for, prompts times n, and log-probabilities of a position.
inline constexpr int kMostChoices = 1024;
inline constexpr int kMostLikeliest = 20;

/// A text to continue, or its token ids.
using RequestPrompt = std::variant<std::string, std::vector<TokenId>>;

struct OpenAiRequest {
  bool chat = true;
  std::string model{};                   ///< empty: not named
  std::vector<RequestPrompt> prompts{};  ///< of a completion: at least one
  std::vector<Message> messages{};   ///< of a chat: at least one, the last not the assistant's; "developer" is "system"
  std::vector<std::string> tools{};  ///< JSON texts; empty if tool_choice is "none"
  int samples = 1;                   ///< n
  std::optional<double> temperature{}, top_p{};
  std::optional<int> top_k{};
  std::optional<int> max_tokens{};  ///< at least 1
  std::optional<std::uint64_t> seed{};
  std::vector<std::string> stop{};  ///< none empty
  std::optional<int> likeliest{};   ///< log-probabilities are wanted, with this many of the likeliest tokens
  bool stream = false;
  bool include_usage = false;
  bool return_token_ids = false;
};

/// What is wrong with one field: "temperature", "messages[2].content"; of the whole body: "".
struct FieldProblem {
  std::string field{};
  std::string message{};  ///< without the field's name
};

using ReadRequest = std::variant<OpenAiRequest, std::vector<FieldProblem>>;

ReadRequest read_chat_request(std::string_view body);
ReadRequest read_completion_request(std::string_view body);

}  // namespace carnot
