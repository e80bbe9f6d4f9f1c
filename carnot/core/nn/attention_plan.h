// nn/attention_plan.h -- which rows of a batch attend to which keys. Rows are tokens, packed without padding.
#pragma once

#include <cstddef>
#include <span>
#include <variant>
#include <vector>

namespace carnot {

class KvCache;

/// Training and log-prob passes: consecutive sequences. Sequence s has rows [offsets[s], offsets[s + 1]).
struct PackedAttention {
  std::vector<int> offsets{0};
  /// A sequence can continue the first past[s] positions of an earlier sequence parents[s]: a prefix that several share
  /// is computed once. -1 and 0: it begins at position 0. Both empty: all do.
  std::vector<int> parents{}, past{};

  int num_sequences() const { return static_cast<int>(offsets.size()) - 1; }
  int parent(int sequence) const { return parents.empty() ? -1 : parents[static_cast<std::size_t>(sequence)]; }
  int past_of(int sequence) const { return past.empty() ? 0 : past[static_cast<std::size_t>(sequence)]; }
};

/// One sequence's new tokens in an engine step: rows [begin, end), after `past` positions that the cache holds.
struct PagedRows {
  int begin = 0;
  int end = 0;
  int past = 0;
  std::span<const int> blocks{};  ///< its block table, with room for past + (end - begin) positions
  /// The same of layers with a window, where the cache has blocks for them; -1: out of every row's sight.
  std::span<const int> window_blocks{};
  int state = -1;  ///< its place among the cache's states; -1: the model has none

  /// Those of a layer, by whether it has a window.
  std::span<const int> blocks_of(bool has_window) const {
    return has_window && !window_blocks.empty() ? window_blocks : blocks;
  }
};

/// Generation: new tokens attend to the cache, and their keys and values are written to it.
struct PagedAttention {
  KvCache* cache = nullptr;
  std::vector<PagedRows> sequences{};
};

using AttentionPlan = std::variant<PackedAttention, PagedAttention>;

}  // namespace carnot
