#include "carnot/core/text/pair_merger.h"

#include <algorithm>

namespace carnot {

void PairMerger::add_word(std::vector<TokenId> tokens, std::int64_t count) {
  words_.push_back({.tokens = std::move(tokens), .count = count});
  count_pairs(words_.size() - 1, 1);
}

void PairMerger::count_pairs(std::size_t word, int sign) {
  const auto& [tokens, count] = words_[word];
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    const TokenPair pair{tokens[i], tokens[i + 1]};
    Occurrences& occurrences = pairs_[key(pair)];
    occurrences.count += sign * count;
    if (sign < 0) continue;
    occurrences.words.insert(word);
    queue_.push({.count = occurrences.count, .pair = pair});
  }
}

std::optional<TokenPair> PairMerger::most_frequent(std::int64_t at_least) {
  while (!queue_.empty()) {
    const Candidate candidate = queue_.top();
    const auto found = pairs_.find(key(candidate.pair));
    const std::int64_t count = found == pairs_.end() ? 0 : found->second.count;
    if (count >= at_least && count == candidate.count) return candidate.pair;
    queue_.pop();
    if (count >= at_least && count < candidate.count) queue_.push({.count = count, .pair = candidate.pair});
  }
  return {};
}

void PairMerger::merge(TokenPair pair, TokenId result) {
  // A fixed order: the counts do not depend on it, the queue's memory does.
  const auto& occurring = pairs_[key(pair)].words;
  std::vector<std::size_t> words(occurring.begin(), occurring.end());
  std::sort(words.begin(), words.end());
  for (const std::size_t word : words) {
    count_pairs(word, -1);
    auto& tokens = words_[word].tokens;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < tokens.size(); ++kept) {
      const bool merges = i + 1 < tokens.size() && TokenPair{tokens[i], tokens[i + 1]} == pair;
      tokens[kept] = merges ? result : tokens[i];
      i += merges ? 2 : 1;
    }
    tokens.resize(kept);
    count_pairs(word, 1);
  }
}

}  // namespace carnot
