// kernel/attention/shared_blocks.h -- which sequences have their first blocks of the cache in common.
//
// Sequences share a block if their tables refer to the same memory. The contents of blocks are never compared.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace carnot::kernel {

/// Blocks [begin, end) are the same memory for all of [first, last).
struct SharedRange {
  int first = 0, last = 0;  ///< places in SharedBlocks::order
  int begin = 0, end = 0;

  bool operator==(const SharedRange&) const = default;
};

struct SharedBlocks {
  std::vector<int> order{};           ///< the tables; those that share blocks are adjacent
  std::vector<SharedRange> ranges{};  ///< each of at least two tables; a range comes before those inside it
};

/// Finds the leading blocks that tables have in common. Of several tables with a common prefix, some can share more (a
/// branch, and a branch of the branch): ranges nest by table and follow each other by block. Ranges begin and end at
/// multiples of `step`.
template <class Block>
class SharedBlocksFinder {
 public:
  SharedBlocksFinder(std::span<const std::span<Block* const>> tables, int step) : tables_(tables), step_(step) {}

  SharedBlocks find() {
    found_.order.resize(tables_.size());
    std::iota(found_.order.begin(), found_.order.end(), 0);
    split(0, static_cast<int>(tables_.size()), 0, 0);
    return std::move(found_);
  }

 private:
  /// Null past the end.
  Block* block(int place, int index) const {
    const auto table = tables_[static_cast<std::size_t>(found_.order[static_cast<std::size_t>(place)])];
    return static_cast<std::size_t>(index) < table.size() ? table[static_cast<std::size_t>(index)] : nullptr;
  }

  /// The tables of [first, last) share the blocks before `same`, and ranges cover those before `begin`. Reorders them
  /// so that tables that share block `same` are adjacent.
  void split(int first, int last, int same, int begin) {
    const auto places = found_.order.begin();
    const auto of_table = [&](int table) {
      const auto blocks = tables_[static_cast<std::size_t>(table)];
      return static_cast<std::size_t>(same) < blocks.size() ? blocks[static_cast<std::size_t>(same)] : nullptr;
    };
    std::stable_sort(places + first, places + last,
                     [&](int a, int b) { return std::less<Block*>()(of_table(a), of_table(b)); });
    for (int next = first; next < last;) {
      Block* const common = block(next, same);
      const int from = next;
      while (next < last && block(next, same) == common) ++next;
      if (common != nullptr && next - from > 1) follow(from, next, same + 1, begin);
    }
  }

  void follow(int first, int last, int same, int begin) {
    const auto all_have = [&](int index) {
      Block* const common = block(first, index);
      for (int place = first; place < last; ++place)
        if (block(place, index) != common || common == nullptr) return false;
      return true;
    };
    while (all_have(same)) ++same;
    const int end = same / step_ * step_;
    if (end > begin) found_.ranges.push_back({first, last, begin, end});
    split(first, last, same, std::max(begin, end));
  }

  std::span<const std::span<Block* const>> tables_;
  int step_;
  SharedBlocks found_{};
};

}  // namespace carnot::kernel
