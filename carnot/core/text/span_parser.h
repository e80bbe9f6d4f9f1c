// text/span_parser.h -- marks think and action tokens inside a sampled response.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "carnot/core/data/tokens.h"
#include "carnot/core/text/tokenizer.h"

namespace carnot {

/// Which tags a protocol uses. Inside an action pair is Action; everything else that was sampled is Think.
struct SpanGrammar {
  std::string think_tag = "think";
  std::vector<std::string> action_tags{"answer"};  ///< e.g. {"search", "answer"}
  bool tags_are_action = false;                    ///< count the tags of an action pair as Action (methods.md 15.3)
  bool think_opened_by_prompt = false;             ///< the prompt ends with the opening think tag
};

struct ParsedResponse {
  std::vector<Span> spans{};  ///< Think and Action over the response's tokens
  bool parsed = false;        ///< false: Unparsable; then everything is Think
};

/// Spans of a sampled response. A token that straddles a border belongs to the part that holds its first byte.
/// Parsed means: one think pair (opened in the prompt or here), then exactly one action pair, both closed.
ParsedResponse parse_response(const Tokenizer& tokenizer, std::span<const TokenId> response,
                              const SpanGrammar& grammar);

/// The first tokens of a response up to and with those of the closing tag of its thought. 0 if there is no such tag, or
/// nothing after it.
int tokens_of_thought(const Tokenizer& tokenizer, std::span<const TokenId> response, const std::string& think_tag);

}  // namespace carnot
