// Any bytes are lines to continue or to score, within the model's vocabulary and length, or messages that name the
// file.
#include <cstddef>
#include <cstdint>

#include "carnot/core/base/check.h"
#include "carnot/core/text/chat_families.h"
#include "carnot/serving/input_lines.h"
#include "testing/small_tokenizer.h"
#include "tests/fuzz/target.h"

namespace {

using carnot::testing::small_tokenizer;

void check(const carnot::Result<std::vector<carnot::InputLine>>& lines, const carnot::InputFormat& format) {
  if (!lines.ok()) {
    CARNOT_CHECK(lines.error().message.starts_with("lines:"), lines.error().message);
    return;
  }
  for (const carnot::InputLine& line : *lines) {
    CARNOT_CHECK(!line.tokens.empty(), "a line without tokens");
    CARNOT_CHECK(static_cast<int>(line.tokens.size()) <= format.max_positions, "a line that is too long");
    for (const carnot::TokenId token : line.tokens) CARNOT_CHECK(token >= 0 && token < format.vocab_size, "a token");
  }
}

}  // namespace

CARNOT_FUZZ_TARGET(input_lines) {
  static const auto chat = carnot::make_chat_family("chatml", small_tokenizer()).value();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const carnot::InputFormat format{
      .tokenizer = &small_tokenizer(), .chat = chat.get(), .vocab_size = 300, .max_positions = 64};
  check(carnot::prompt_lines(text, format, "lines"), format);
  check(carnot::sequence_lines(text, format, "lines"), format);
  return 0;
}
