// text/vocabulary.h -- token ids and their bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/data/tokens.h"

namespace carnot {

/// Ids need not be contiguous. Grows only through insert(); find() and bytes() are thread-safe afterwards.
class Vocabulary {
 public:
  /// `reachable`: find() may answer with it (entries outside the byte alphabet are decoded only).
  /// REQUIRES: an id that is not taken; for a reachable one, bytes that are not.
  void insert(TokenId id, std::string_view bytes, bool reachable);

  /// The reachable token of exactly these bytes, -1 if there is none.
  TokenId find(std::string_view bytes) const;

  bool contains(TokenId id) const { return id >= 0 && id < size() && entries_[id].length != kHole; }

  /// REQUIRES: contains(id).
  std::string_view bytes(TokenId id) const {
    const Entry& entry = entries_[id];
    return std::string_view(arena_).substr(entry.offset, entry.length);
  }

  /// Largest id + 1.
  TokenId size() const { return static_cast<TokenId>(entries_.size()); }

 private:
  static constexpr std::uint32_t kHole = UINT32_MAX;

  struct Entry {
    std::size_t offset = 0;
    std::uint32_t length = kHole;
  };
  struct Slot {
    std::uint32_t hash = 0;
    TokenId id = -1;
  };

  void place(Slot slot);
  void grow();

  std::string arena_;
  std::vector<Entry> entries_;                        // by id
  std::vector<Slot> slots_ = std::vector<Slot>(512);  // open addressing, linear probing, a power of two
  std::size_t used_ = 0;
};

}  // namespace carnot
