// serving/input_lines.h -- JSON lines in: prompts to continue, sequences to measure.
//
// A line of `carnot generate --input` is a JSON string, or an object with one of
//   "prompt": TEXT            "messages": [{"role": ..., "content": ...}, ...]            "ids": [...]
// and of `carnot score` an object with one of
//   "text": TEXT              "ids": [...]
// An optional "id" is repeated in the result. All lines are read before anything is computed; every
// problem names its line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/data/tokens.h"
#include "carnot/core/text/chat.h"

namespace carnot {

struct InputLine {
  std::string id{};  ///< JSON text; empty if the line has none
  std::vector<TokenId> tokens{};
};

/// How texts become tokens, and which ids there are.
struct InputFormat {
  const Tokenizer* tokenizer = nullptr;  ///< null: texts are refused
  std::string tokenizer_problem{};       ///< then: why
  const ChatFamily* chat = nullptr;      ///< null: prompts are raw text, and messages are refused
  std::string system{};                  ///< precedes a prompt; for messages, unless one is a system message
  int vocab_size = 0;
  int max_positions = 0;  ///< tokens of a line: fewer for a prompt, at most so many for a measured sequence
};

/// The tokens of one prompt: a chat opening, or the raw text.
Result<InputLine> prompt_input(const std::string& text, const InputFormat& format, const std::string& where);

/// The tokens of a conversation, as the JSON text of its messages, up to where the assistant speaks.
Result<InputLine> messages_input(const std::string& json, const InputFormat& format, const std::string& where);

Result<std::vector<InputLine>> prompt_lines(std::string_view text, const InputFormat& format, const std::string& name);
Result<std::vector<InputLine>> sequence_lines(std::string_view text, const InputFormat& format,
                                              const std::string& name);

}  // namespace carnot
