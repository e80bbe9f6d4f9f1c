// Any bytes are a tokenizer.json or a message that says where; an accepted one encodes anything. Start from the corpus
// tests/golden/tokenizer: without byte symbols nothing is accepted.
#include <cstddef>
#include <cstdint>

#include "carnot/core/base/check.h"
#include "carnot/core/text/tokenizer.h"
#include "tests/fuzz/target.h"

CARNOT_FUZZ_TARGET(tokenizer) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto tokenizer = carnot::Tokenizer::parse(text, "fuzzed.json");
  if (!tokenizer.ok()) {
    CARNOT_CHECK(tokenizer.error().message.starts_with("fuzzed.json: "), tokenizer.error().message);
    return 0;
  }
  for (const carnot::TokenId id : tokenizer->encode(text.substr(0, 4096)))
    CARNOT_CHECK(tokenizer->has(id), "an encoded id is a token");
  return 0;
}
