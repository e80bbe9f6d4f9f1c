// kernel/sequence_trees.h -- sequences of a call that continue earlier ones, by tree. Internal to the room.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "carnot/core/base/check.h"

namespace carnot::kernel {

/// Indices of the sequences, grouped by common root, in order. A sequence names an earlier one as its `parent`, or -1.
template <class Rows>
std::vector<std::vector<std::size_t>> trees_of(std::span<const Rows> sequences) {
  std::vector<std::vector<std::size_t>> trees;
  std::vector<std::size_t> tree_of;
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    const int parent = sequences[s].parent;
    CARNOT_CHECK_LT(parent, static_cast<int>(s));
    tree_of.push_back(parent < 0 ? trees.size() : tree_of[static_cast<std::size_t>(parent)]);
    if (parent < 0) trees.emplace_back();
    trees[tree_of.back()].push_back(s);
  }
  return trees;
}

}  // namespace carnot::kernel
