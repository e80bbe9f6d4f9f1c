// credit/similarity.h -- string similarity as defined by Ratcliff and Obershelp.
#pragma once

#include <string_view>

namespace carnot {

/// 2 M / (|a| + |b|) in code points, where M is the number of characters in recursively longest common blocks; 1 for
/// two empty strings. Equals Python's difflib.SequenceMatcher(None, a, b).ratio(), including its rule for popular
/// characters: if `b` has 200 characters or more, one that makes up over 1 % of it starts no block.
double similarity(std::string_view a, std::string_view b);

}  // namespace carnot
