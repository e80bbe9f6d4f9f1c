// data/message.h -- what is said in a conversation: messages, and the functions that an assistant calls.
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
  std::string tool_call_id{};          ///< of a tool's result, where the format has such
};

/// What a policy said in one turn.
struct PolicyResponse {
  std::string text{};                  ///< the message, what its prompt began it with included, without the stop token
  std::vector<ToolCall> tool_calls{};  ///< in the family's own format, where tools were offered; in order
  std::string problem{};               ///< why what looks like a call cannot be read; then there are no tool_calls

  PolicyResponse() = default;
  PolicyResponse(std::string_view said) : text(said) {}  // a text is a response without calls
  PolicyResponse(std::string said) : text(std::move(said)) {}
  PolicyResponse(const char* said) : text(said) {}

  bool operator==(const PolicyResponse&) const = default;
};

}  // namespace carnot
