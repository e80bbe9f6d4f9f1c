// data/message.h -- messages of a conversation, and the function calls of an assistant.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace carnot {

/// A function that an assistant message calls.
struct ToolCall {
  std::string name{};
  std::string arguments = "{}";  ///< a JSON object
  std::string id{};              ///< Mistral's: nine letters or digits; empty in families without ids

  bool operator==(const ToolCall&) const = default;
};

struct Message {
  std::string role{};  ///< "system", "user", "assistant", "tool"
  std::string content{};
  std::vector<ToolCall> tool_calls{};  ///< of an assistant message
  std::string tool_call_id{};          ///< of a tool's result, if the format has ids
};

/// The policy's response in one turn.
struct PolicyResponse {
  std::string text{};                  ///< the message, with its beginning in the prompt and without the stop token
  std::vector<ToolCall> tool_calls{};  ///< in the family's own format, if tools were offered; in order
  std::string problem{};               ///< why an apparent call cannot be parsed; tool_calls is then empty

  PolicyResponse() = default;
  PolicyResponse(std::string_view said) : text(said) {}  // a string is a response without calls
  PolicyResponse(std::string said) : text(std::move(said)) {}
  PolicyResponse(const char* said) : text(said) {}

  bool operator==(const PolicyResponse&) const = default;
};

}  // namespace carnot
