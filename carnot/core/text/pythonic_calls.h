// text/pythonic_calls.h -- calls of functions as Python writes them: name(word="north", limit=2, exact=True).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/data/message.h"

namespace carnot {

struct PythonicCalls {
  std::vector<ToolCall> calls{};
  std::size_t end = 0;  ///< bytes that were read
};

/// Reads calls from the beginning of `text`, at least one: a list of them in brackets, or without brackets as many as
/// follow each other. A comma or a line end is between two. Arguments are keywords; values are strings, numbers,
/// booleans, None, lists and dicts with strings as keys, and JSON's true, false and null. Strings are in single or
/// double quotes, with Python's escapes and JSON's pairs of surrogates; a backslash before another letter stays. Fails
/// with the byte and what was expected there. Values nest no deeper than base/limits.h allows JSON.
Result<PythonicCalls> read_pythonic_calls(std::string_view text, bool in_brackets);

/// How the values of arguments are written.
enum class PythonicValues {
  Json,
  Python,  ///< strings in single quotes, True, False, None; lists and dicts are JSON here, too
};

/// name(key=value, ...). REQUIRES: arguments are a JSON object.
std::string pythonic_call(const ToolCall& call, PythonicValues values);

}  // namespace carnot
