// testing/random_text.h -- random strings that provoke bugs in text code.
#pragma once

#include <string>

#include "carnot/core/base/random.h"

namespace carnot::testing {

/// Valid UTF-8 of `length` characters: letters, digits, blanks, marks, Hangul, emoji, anything assigned or not.
std::string random_unicode(RandomStream& random, int length);

/// Any bytes; mostly not UTF-8.
std::string random_bytes(RandomStream& random, int length);

/// `text` with one to three random edits: bytes changed, removed, doubled; stretches moved; the end cut off.
std::string mutated(RandomStream& random, std::string text);

}  // namespace carnot::testing
