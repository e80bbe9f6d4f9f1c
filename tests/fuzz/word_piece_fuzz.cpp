// A vocabulary is read or refused; any text then becomes ids of it, at most as many as requested.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "carnot/core/base/check.h"
#include "carnot/core/text/word_piece.h"
#include "tests/fuzz/target.h"

CARNOT_FUZZ_TARGET(word_piece) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto half = std::min(bytes.find('\0'), bytes.size());
  const auto tokenizer = carnot::WordPieceTokenizer::parse(bytes.substr(0, half), "vocabulary");
  if (!tokenizer) return 0;
  for (const std::size_t longest : {2, 9}) {
    const auto ids = tokenizer->encode(bytes.substr(half), longest);
    CARNOT_CHECK(ids.size() >= 2 && ids.size() <= longest, std::to_string(ids.size()));
    for (const carnot::TokenId id : ids)
      CARNOT_CHECK(id >= 0 && static_cast<std::size_t>(id) < tokenizer->size(), std::to_string(id));
  }
  return 0;
}
