// text/tokenize_lines.h -- the command `carnot tokenize`: JSON strings to JSON arrays of token ids, a line each, and
// back.
#pragma once

#include <iosfwd>

#include "carnot/core/base/result.h"
#include "carnot/core/text/tokenizer.h"

namespace carnot {

/// A JSON string a line in, an array of ids a line out. Each line is written and flushed before the next is read.
/// Stops at the first line that is not a JSON string and names it.
Status encode_lines(const Tokenizer& tokenizer, std::istream& in, std::ostream& out);

/// The reverse: arrays of ids in, JSON strings out. Bytes that are not UTF-8 become U+FFFD.
Status decode_lines(const Tokenizer& tokenizer, std::istream& in, std::ostream& out);

}  // namespace carnot
