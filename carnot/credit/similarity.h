// credit/similarity.h -- how alike two texts are, as Ratcliff and Obershelp measure it.
#pragma once

#include <string_view>

namespace carnot {

/// 2 M / (|a| + |b|) in code points, M the characters in recursively longest common blocks; 1 for two empty texts.
/// The same number as Python's difflib.SequenceMatcher(None, a, b).ratio(), its rule for popular characters
/// included: in a `b` of 200 or more, a character that fills over 1 % of it starts no block.
double similarity(std::string_view a, std::string_view b);

}  // namespace carnot
