#include "carnot/core/data/prefix_tree.h"

namespace carnot {

template <class Visit>
PrefixTree::Match PrefixTree::follow(std::span<const TokenId> tokens, const Visit& visit) const {
  Match match;
  const int size = static_cast<int>(tokens.size());
  while (match.length < size) {
    const auto next = next_.find({match.stretch, match.length, tokens[static_cast<std::size_t>(match.length)]});
    if (next == next_.end()) break;
    match.stretch = next->second;
    const Stretch& stretch = stretches_[static_cast<std::size_t>(match.stretch)];
    const int begin = match.length, end = stretch.past + stretch.rows;
    while (match.length < size && match.length < end &&
           tokens_[static_cast<std::size_t>(stretch.begin + match.length - stretch.past)] ==
               tokens[static_cast<std::size_t>(match.length)])
      ++match.length;
    visit(stretch, begin, match.length);
  }
  return match;
}

void PrefixTree::append(int parent, std::span<const TokenId> tokens, int past, std::vector<std::int64_t>& rows) {
  const int size = static_cast<int>(tokens.size());
  stretches_.push_back({.parent = parent, .past = past, .begin = num_rows(), .rows = size - past});
  for (int position = past; position < size; ++position) {
    rows.push_back(num_rows());
    tokens_.push_back(tokens[static_cast<std::size_t>(position)]);
    positions_.push_back(position);
  }
}

std::vector<std::int64_t> PrefixTree::add(std::span<const TokenId> tokens) {
  std::vector<std::int64_t> rows;
  const Match match = follow(tokens, [&](const Stretch& stretch, int begin, int end) {
    for (int position = begin; position < end; ++position) rows.push_back(stretch.begin + position - stretch.past);
  });
  if (match.length == static_cast<int>(tokens.size())) return rows;
  next_[{match.stretch, match.length, tokens[static_cast<std::size_t>(match.length)]}] =
      static_cast<int>(stretches_.size());
  append(match.stretch, tokens, match.length, rows);
  return rows;
}

std::vector<std::int64_t> PrefixTree::add_alone(std::span<const TokenId> tokens) {
  std::vector<std::int64_t> rows;
  if (!tokens.empty()) append(-1, tokens, 0, rows);
  return rows;
}

int PrefixTree::num_new_rows(std::span<const TokenId> tokens) const {
  return static_cast<int>(tokens.size()) - follow(tokens, [](const Stretch&, int, int) {}).length;
}

}  // namespace carnot
