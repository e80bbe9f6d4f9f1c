// text/pair_merger.h -- the loop of byte-pair training: count neighbours in words, merge the most frequent pair.
#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "carnot/core/data/tokens.h"

namespace carnot {

struct TokenPair {
  TokenId left = 0;
  TokenId right = 0;

  auto operator<=>(const TokenPair&) const = default;
};

/// Words with their counts, and the counts of all pairs of neighbours in them, kept up to date.
class PairMerger {
 public:
  void add_word(std::vector<TokenId> tokens, std::int64_t count);

  /// The most frequent pair, of equals the smaller one; nothing if none occurs `at_least` times.
  std::optional<TokenPair> most_frequent(std::int64_t at_least);

  /// Replaces the pair by `result` in all words, from left to right.
  void merge(TokenPair pair, TokenId result);

  /// The pair shall not be answered by most_frequent() any more.
  void forget(TokenPair pair) { pairs_.erase(key(pair)); }

 private:
  struct Word {
    std::vector<TokenId> tokens{};
    std::int64_t count = 0;
  };
  struct Occurrences {
    std::int64_t count = 0;
    std::unordered_set<std::size_t> words{};  // may hold words that lost the pair since
  };
  struct Candidate {
    std::int64_t count = 0;
    TokenPair pair{};

    bool operator<(const Candidate& other) const {
      return count != other.count ? count < other.count : pair > other.pair;
    }
  };

  static std::uint64_t key(TokenPair pair) {
    return static_cast<std::uint64_t>(pair.left) << 32 | static_cast<std::uint32_t>(pair.right);
  }
  /// Counts the pairs of the word `sign` times its count.
  void count_pairs(std::size_t word, int sign);

  std::vector<Word> words_;
  std::unordered_map<std::uint64_t, Occurrences> pairs_;
  std::priority_queue<Candidate> queue_;  // counts as they were; checked when taken out
};

}  // namespace carnot
