// Any first line is a split pattern, or a message that shows it; its pieces of the rest are the rest.
#include <cstddef>
#include <cstdint>

#include "carnot/core/base/check.h"
#include "carnot/core/base/utf8.h"
#include "carnot/core/text/split_pattern.h"
#include "tests/fuzz/target.h"

CARNOT_FUZZ_TARGET(split_pattern) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::string_view source = input.substr(0, input.find('\n'));
  std::string_view text = input.substr(std::min(input.size(), source.size() + 1)).substr(0, 256);
  text = text.substr(0, carnot::valid_prefix(text));
  const auto pattern = carnot::SplitPattern::compile(source);
  if (!pattern.ok()) {
    CARNOT_CHECK(pattern.error().message.starts_with("'"), pattern.error().message);
    return 0;
  }
  carnot::SplitScratch scratch;
  std::string joined;
  const auto add = [&](std::string_view piece) { joined += piece; };
  const carnot::Status status = pattern->for_each_piece(text, scratch, add);
  CARNOT_CHECK(status.ok() ? joined == text : text.starts_with(joined), "pieces are the text, one after the other");
  return 0;
}
