// tools/mcp/command_words.h -- a command line as its words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"

namespace carnot {

/// Words of a command, split at blanks; '...' and "..." hold blanks together, and \ takes the next character as it is.
/// The error names a quote that does not end.
Result<std::vector<std::string>> command_words(std::string_view text);

}  // namespace carnot
