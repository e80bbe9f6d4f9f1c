// Any text is calls of Python's, or a message that says what was expected; written again, they are the same calls. The
// first byte chooses whether they are in brackets.
#include <cstddef>
#include <cstdint>
#include <string>

#include "carnot/core/base/check.h"
#include "carnot/core/text/pythonic_calls.h"
#include "tests/fuzz/target.h"

CARNOT_FUZZ_TARGET(pythonic_calls) {
  using carnot::PythonicValues;
  if (size == 0) return 0;
  const bool in_brackets = data[0] % 2 == 1;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  const auto read = carnot::read_pythonic_calls(text, in_brackets);
  if (!read) {
    CARNOT_CHECK(read.error().message.starts_with("this tool call cannot be read: "), read.error().message);
    return 0;
  }
  CARNOT_CHECK(read->end <= text.size() && !read->calls.empty(), "calls are within the text");
  for (const PythonicValues values : {PythonicValues::Json, PythonicValues::Python}) {
    for (const carnot::ToolCall& call : read->calls) {
      const std::string said = carnot::pythonic_call(call, values);
      const auto again = carnot::read_pythonic_calls(said, false);
      CARNOT_CHECK(again && again->calls.size() == 1 && again->calls[0] == call && again->end == said.size(), said);
    }
  }
  return 0;
}
