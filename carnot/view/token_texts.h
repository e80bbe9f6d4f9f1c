// view/token_texts.h -- a text for each token, where tokens are bytes and a character may take several.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "carnot/core/text/tokenizer.h"

namespace carnot {

/// Whether the token's bytes are characters by themselves.
bool is_text(const Tokenizer& tokenizer, TokenId id);

/// The texts of the tokens; joined, they are the text of all of them, with U+FFFD for bytes that are no character.
/// Neighbours that are no text by themselves have theirs together, at the first of them.
std::vector<std::string> token_texts(std::span<const TokenId> tokens, const Tokenizer& tokenizer);

}  // namespace carnot
