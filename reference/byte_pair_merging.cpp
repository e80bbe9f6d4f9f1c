#include "reference/byte_pair_merging.h"

namespace carnot::reference {
namespace {

/// Where the pair first occurs, or the number of symbols.
std::size_t find_pair(const std::vector<std::string>& symbols, const std::pair<std::string, std::string>& pair) {
  for (std::size_t i = 0; i + 1 < symbols.size(); ++i)
    if (symbols[i] == pair.first && symbols[i + 1] == pair.second) return i;
  return symbols.size();
}

bool merge_once(std::vector<std::string>& symbols, const std::vector<std::pair<std::string, std::string>>& merges) {
  for (const auto& pair : merges) {
    const std::size_t i = find_pair(symbols, pair);
    if (i == symbols.size()) continue;
    symbols[i] += symbols[i + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> merge_pairs(std::vector<std::string> symbols,
                                     const std::vector<std::pair<std::string, std::string>>& merges) {
  while (merge_once(symbols, merges)) {
  }
  return symbols;
}

}  // namespace carnot::reference
