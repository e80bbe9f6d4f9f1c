// kernel/recurrent/recurrent_segments.h -- cuts sequences with a recurrent state into segments, each of which starts
// from the state at the end of another one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace carnot::kernel {

/// One sequence's new rows [begin, begin + rows).
struct RecurrentRows {
  std::int64_t begin = 0;
  int rows = 0;
  int past = 0;  ///< positions of the parent, and of what it continues, that precede these rows; 0 without a parent
  /// Index of an earlier sequence of the same call. These rows start from its state after `past` positions, so that a
  /// prefix that several share is computed once. -1: none.
  int parent = -1;
};

/// The most rows of a segment. States are kept between segments only.
inline constexpr int kSegmentRows = 64;

/// Rows [begin, begin + rows) of a sequence, which start from the state after those of segment `before`.
struct RecurrentSegment {
  std::int64_t begin = 0;
  int rows = 0;
  int sequence = 0;
  std::int64_t in_tree = 0;  ///< rows of the tree's earlier segments
  int before = -1;           ///< index among the tree's segments; -1: none
  int successors = 0;        ///< number of segments that start where this one ends
  bool last_behind = false;  ///< no later segment starts where `before` ends
};

/// A sequence without a parent and all that continue it. A segment comes after the one that it starts from.
struct RecurrentTree {
  std::vector<RecurrentSegment> segments{};
  std::int64_t rows = 0;
};

/// Each sequence is cut every kSegmentRows rows, and where another one continues it.
std::vector<RecurrentTree> recurrent_trees(std::span<const RecurrentRows> sequences);

}  // namespace carnot::kernel
