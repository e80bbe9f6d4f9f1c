// text/merge_table.h -- which pairs of tokens merge, in which order, into what (byte-pair encoding).
//
// Sennrich et al. 2016: of all neighbours that may merge, the pair with the lowest rank does, the leftmost first,
// until none may.
#pragma once

#include <cstdint>
#include <vector>

#include "carnot/core/data/tokens.h"

namespace carnot {

struct Merge {
  TokenId left = 0;
  TokenId right = 0;
  TokenId result = 0;
};

/// Immutable after construction.
class MergeTable {
 public:
  /// In the order of their ranks, lowest first. Of two merges of one pair the later counts.
  explicit MergeTable(const std::vector<Merge>& merges);

  /// Working memory of merge(); not shared between threads.
  struct Scratch {
    struct Symbol {
      TokenId token = 0;
      std::uint32_t rank = 0;  ///< of the merge with the next symbol
      int next = 0;
      int previous = 0;
    };
    struct Candidate {
      std::uint32_t rank = 0;
      int position = 0;
      TokenId left = 0;
      TokenId right = 0;
    };
    std::vector<Symbol> symbols{};
    std::vector<Candidate> heap{};
  };

  /// Merges `tokens` in place.
  void merge(std::vector<TokenId>& tokens, Scratch& scratch) const;

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  struct Slot {
    std::uint64_t pair = UINT64_MAX;
    std::uint32_t rank = kNone;
    TokenId result = 0;
  };

  static std::uint64_t key(TokenId left, TokenId right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
  }
  std::size_t home(std::uint64_t pair) const { return static_cast<std::size_t>(pair * 0x9E3779B97F4A7C15u >> shift_); }
  /// Index of the pair's slot, or of the empty one (rank kNone) where it would be.
  std::size_t index_of(TokenId left, TokenId right) const;
  const Slot& find(TokenId left, TokenId right) const { return slots_[index_of(left, right)]; }

  void merge_short(std::vector<TokenId>& tokens, Scratch& scratch) const;
  void merge_long(std::vector<TokenId>& tokens, Scratch& scratch) const;

  std::vector<Slot> slots_;  // open addressing, linear probing, a power of two
  int shift_ = 0;
};

}  // namespace carnot
