#include "carnot/core/kernel/recurrent/recurrent_segments.h"

#include <algorithm>

#include "carnot/core/base/check.h"
#include "carnot/core/kernel/sequence_trees.h"

namespace carnot::kernel {
namespace {

/// Behind the first `rows` rows of a sequence; -1: before every row.
struct SequencePlace {
  int sequence = -1;
  int rows = 0;
};
/// A segment and the number of its sequence's rows up to its end.
struct SegmentEnd {
  int segment = 0;
  int rows = 0;
};

/// The rows that a sequence starts behind: its parent's own, or of what that one continues.
SequencePlace start_of(std::span<const RecurrentRows> sequences, std::size_t number) {
  const int past = sequences[number].past;
  int owner = sequences[number].parent;
  if (owner < 0) CARNOT_CHECK_EQ(past, 0);
  while (owner >= 0 && past <= sequences[static_cast<std::size_t>(owner)].past)
    owner = sequences[static_cast<std::size_t>(owner)].parent;
  if (owner < 0) return {};
  const RecurrentRows& rows = sequences[static_cast<std::size_t>(owner)];
  CARNOT_CHECK_LE(past, rows.past + rows.rows);
  return {.sequence = owner, .rows = past - rows.past};
}

class SegmentedSequences {
 public:
  explicit SegmentedSequences(std::span<const RecurrentRows> sequences)
      : sequences_(sequences), cuts_(sequences.size()), ends_(sequences.size()) {
    for (std::size_t s = 0; s < sequences.size(); ++s) {
      starts_.push_back(start_of(sequences, s));
      for (int row = kSegmentRows; row < sequences[s].rows; row += kSegmentRows) cuts_[s].push_back(row);
      cuts_[s].push_back(sequences[s].rows);
      if (starts_[s].sequence >= 0) cuts_[static_cast<std::size_t>(starts_[s].sequence)].push_back(starts_[s].rows);
    }
    for (std::vector<int>& cuts : cuts_) std::sort(cuts.begin(), cuts.end());
  }

  RecurrentTree tree(const std::vector<std::size_t>& numbers) {
    RecurrentTree tree;
    for (const std::size_t number : numbers) append(number, tree);
    std::vector<int> left;
    for (const RecurrentSegment& segment : tree.segments) left.push_back(segment.successors);
    for (RecurrentSegment& segment : tree.segments)
      segment.last_behind = segment.before >= 0 && --left[static_cast<std::size_t>(segment.before)] == 0;
    return tree;
  }

 private:
  void append(std::size_t number, RecurrentTree& tree) {
    int row = 0, before = segment_at(starts_[number]);
    for (const int cut : cuts_[number]) {
      if (cut == row) continue;
      if (before >= 0) ++tree.segments[static_cast<std::size_t>(before)].successors;
      tree.segments.push_back({.begin = sequences_[number].begin + row,
                               .rows = cut - row,
                               .sequence = static_cast<int>(number),
                               .in_tree = tree.rows,
                               .before = before});
      before = static_cast<int>(tree.segments.size()) - 1;
      ends_[number].push_back({.segment = before, .rows = cut});
      tree.rows += cut - row;
      row = cut;
    }
  }

  /// The segment that ends there, or -1.
  int segment_at(const SequencePlace& place) const {
    if (place.sequence < 0) return -1;
    const std::vector<SegmentEnd>& ends = ends_[static_cast<std::size_t>(place.sequence)];
    return std::find_if(ends.begin(), ends.end(), [&](const SegmentEnd& end) { return end.rows == place.rows; })
        ->segment;
  }

  std::span<const RecurrentRows> sequences_;
  // By sequence.
  std::vector<SequencePlace> starts_{};
  std::vector<std::vector<int>> cuts_;
  std::vector<std::vector<SegmentEnd>> ends_;
};

}  // namespace

std::vector<RecurrentTree> recurrent_trees(std::span<const RecurrentRows> sequences) {
  SegmentedSequences segmented(sequences);
  std::vector<RecurrentTree> trees;
  for (const std::vector<std::size_t>& numbers : trees_of(sequences)) trees.push_back(segmented.tree(numbers));
  return trees;
}

}  // namespace carnot::kernel
