// reference/byte_pair_merging.h -- byte-pair encoding by its definition: look at all pairs, merge one, start again.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace carnot::reference {

/// Merges the leftmost pair of the lowest rank until no pair is in `merges`, which are in the order of their ranks.
std::vector<std::string> merge_pairs(std::vector<std::string> symbols,
                                     const std::vector<std::pair<std::string, std::string>>& merges);

}  // namespace carnot::reference
