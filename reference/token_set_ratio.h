// reference/token_set_ratio.h -- thefuzz's token_set_ratio by its definition, for words of ASCII letters and blanks.
#pragma once

#include <string>

namespace carnot::reference {

/// The best of three comparisons of the sorted words: those in common against those and the rest of `a`, against those
/// and the rest of `b`, and the latter two against each other. Each is 100 * 2 * M / (lengths), where M is the length
/// of the longest common subsequence; rounded at the end.
int token_set_ratio(const std::string& a, const std::string& b);

}  // namespace carnot::reference
