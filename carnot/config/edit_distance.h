// config/edit_distance.h -- how far apart two words are, for suggestions.
#pragma once

#include <string_view>

namespace carnot {

/// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other (optimal string
/// alignment).
int edit_distance(std::string_view a, std::string_view b);

}  // namespace carnot
