// text/byte_alphabet.h -- the printable character for each byte in a byte-level vocabulary.
//
// GPT-2's table: bytes 33-126, 161-172 and 174-255 map to themselves; the other 68, in order, map to U+0100 and up
// (a blank is U+0120, "Ġ"; a newline is U+010A, "Ċ").
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace carnot {

/// "Ġword" for " word".
std::string bytes_to_symbols(std::string_view bytes);

/// " word" for "Ġword"; nothing if a character is not in the alphabet.
std::optional<std::string> symbols_to_bytes(std::string_view symbols);

}  // namespace carnot
