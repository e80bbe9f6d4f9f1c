// serving/openai/chat_answer.h -- the answer of an OpenAI-compatible server to a chat completion, read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/data/message.h"
#include "carnot/serving/openai/answer.h"

namespace carnot {

struct ChatAnswer {
  std::string text{};  ///< empty if the model only calls tools
  std::vector<ToolCall> tool_calls{};
  std::string finish_reason{};  ///< "stop", "length", "tool_calls"; empty if the server does not say
  TokenUsage usage{};           ///< zeros where the server does not say
};

/// Reads the first choice. Members that are not used may be anything; `where` is for the error, which shows the body's
/// beginning.
Result<ChatAnswer> parse_chat_answer(std::string_view body, const std::string& where);

}  // namespace carnot
