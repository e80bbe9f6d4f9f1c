// serving/openai/answer.h -- answers of OpenAI's API: whole ones, the pieces of streamed ones, lists of models, errors.
//
// Everything is JSON text. Bytes that are not UTF-8 are U+FFFD in it, except under `bytes`.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/data/message.h"
#include "carnot/core/data/tokens.h"
#include "carnot/serving/openai/request.h"

namespace carnot {

struct NamedLogProb {
  std::string bytes{};
  double log_prob = 0;  ///< nats
};

struct AnsweredToken {
  TokenId id = 0;
  NamedLogProb drawn{};
  std::vector<NamedLogProb> likeliest{};  ///< most likely first
};

/// One text of an answer, or of a streamed one what is new of it.
struct AnsweredChoice {
  int index = 0;
  std::string text{};
  std::vector<ToolCall> tool_calls{};
  std::string finish_reason{};  ///< "stop", "length", "tool_calls"; empty: it continues
  std::vector<AnsweredToken> tokens{};
  std::vector<TokenId> prompt{};  ///< of a completion: token ids of its prompt
  std::size_t text_offset = 0;    ///< of a completion: characters of its text before this
};

/// What all pieces of an answer repeat.
struct AnswerHead {
  std::string id{};
  std::string model{};
  std::int64_t created = 0;  ///< seconds since 1970
};

struct TokenUsage {
  std::int64_t prompt = 0;
  std::int64_t completion = 0;
};

/// The answer to a request that does not stream. `prompt`: token ids of a chat's prompt.
std::string whole_answer(const OpenAiRequest& request, const AnswerHead& head, std::span<const AnsweredChoice> choices,
                         const TokenUsage& usage, std::span<const TokenId> prompt);

/// Server-sent events ("data: {...}\n\n") of one that streams: for a chat, first one opening a choice, with the
/// prompt's token ids at the first; then what is new of a choice; the usage, if the request wants it; the end.
std::string opening_event(const OpenAiRequest& request, const AnswerHead& head, int choice,
                          std::span<const TokenId> prompt);
std::string choice_event(const OpenAiRequest& request, const AnswerHead& head, const AnsweredChoice& piece);
std::string usage_event(const OpenAiRequest& request, const AnswerHead& head, const TokenUsage& usage);
inline constexpr std::string_view kLastEvent = "data: [DONE]\n\n";
/// Something failed after the answer had begun.
std::string error_event(int status, const std::string& message);

/// {"error": {"message": ..., "type": ..., "param": ..., "code": ...}}; the type goes with the HTTP status.
std::string error_answer(int status, const std::string& message, const std::string& param = "");
/// All problems, a line each; the first one's field is the `param`. REQUIRES: at least one.
std::string error_answer(std::span<const FieldProblem> problems);

/// The list of the one model that is served.
std::string models_answer(const std::string& model, std::int64_t created, int max_positions);
std::string model_answer(const std::string& model, std::int64_t created, int max_positions);

}  // namespace carnot
