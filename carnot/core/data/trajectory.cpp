#include "carnot/core/data/trajectory.h"

namespace carnot {

int Trajectory::num_sampled() const {
  int count = 0;
  for (int k = 0; k < num_turns(); ++k) count += turn(k).num_sampled();
  return count;
}

int Trajectory::reward_token(int turns_before) const {
  for (int k = turns_before - 1; k >= 0; --k)
    if (turn(k).num_sampled() > 0) return sampled_end(k) - 1;
  return turns_before < num_turns() ? reward_token(num_turns()) : num_tokens() - 1;
}

std::vector<TokenId> Trajectory::tokens() const {
  std::vector<TokenId> all;
  all.reserve(num_tokens());
  for (int k = 0; k < num_turns(); ++k) all.insert(all.end(), turn(k).tokens.begin(), turn(k).tokens.end());
  return all;
}

std::vector<SpanKind> Trajectory::kinds() const {
  std::vector<SpanKind> all;
  all.reserve(num_tokens());
  for (int k = 0; k < num_turns(); ++k)
    for (const Span& span : turn(k).spans) all.insert(all.end(), span.end - span.begin, span.kind);
  return all;
}

std::vector<bool> Trajectory::sampled() const {
  std::vector<bool> all(num_tokens(), false);
  for (int k = 0; k < num_turns(); ++k)
    for (int i = sampled_begin(k); i < sampled_end(k); ++i) all[i] = true;
  return all;
}

std::vector<double> Trajectory::column(Column column) const {
  std::vector<double> all;
  all.reserve(num_tokens());
  for (int t : turns) {
    const auto& values = tree->columns.turn(column, t);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

Trajectory trajectory(const Group& group, int group_index, int tree_index, int leaf_index) {
  Trajectory view{.group = &group,
                  .tree = &group.trees[tree_index],
                  .group_index = group_index,
                  .tree_index = tree_index,
                  .leaf_index = leaf_index};
  view.turns = path(*view.tree, leaf_index);
  view.turn_offsets.push_back(0);
  for (int t : view.turns)
    view.turn_offsets.push_back(view.turn_offsets.back() + static_cast<int>(view.tree->turns[t].tokens.size()));
  return view;
}

std::vector<Trajectory> trajectories(std::span<const Group> groups) {
  std::vector<Trajectory> all;
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (std::size_t t = 0; t < groups[g].trees.size(); ++t)
      for (std::size_t i = 0; i < groups[g].trees[t].leaves.size(); ++i)
        all.push_back(trajectory(groups[g], static_cast<int>(g), static_cast<int>(t), static_cast<int>(i)));
  return all;
}

}  // namespace carnot
