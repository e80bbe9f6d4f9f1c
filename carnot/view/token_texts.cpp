#include "carnot/view/token_texts.h"

#include "carnot/core/base/utf8.h"

namespace carnot {

bool is_text(const Tokenizer& tokenizer, TokenId id) {
  const std::string_view bytes = tokenizer.bytes_of(id);
  return valid_prefix(bytes) == bytes.size();
}

std::vector<std::string> token_texts(std::span<const TokenId> tokens, const Tokenizer& tokenizer) {
  std::vector<std::string> texts(tokens.size());
  for (std::size_t i = 0; i < tokens.size();) {
    std::string bytes(tokenizer.bytes_of(tokens[i]));
    std::size_t next = i + 1;
    if (!is_text(tokenizer, tokens[i]))
      for (; next < tokens.size() && !is_text(tokenizer, tokens[next]); ++next)
        bytes += tokenizer.bytes_of(tokens[next]);
    texts[i] = with_replacement_characters(bytes);
    i = next;
  }
  return texts;
}

}  // namespace carnot
