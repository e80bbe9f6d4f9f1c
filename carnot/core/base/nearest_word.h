// base/nearest_word.h -- suggests the known word that a mistyped one probably meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace carnot {

/// Insertions, deletions, replacements and swaps of adjacent characters that turn one word into the other (optimal
/// string alignment).
int edit_distance(std::string_view a, std::string_view b);

/// The nearest of `known`; empty if even that one differs in more than half of the word.
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

/// "there is no method 'grop'; did you mean 'grpo'?"; if no word is near, lists the known ones instead.
std::string unknown_word(std::string_view kind, std::string_view word, const std::vector<std::string>& known);

}  // namespace carnot
