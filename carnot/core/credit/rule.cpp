#include "carnot/core/credit/rule.h"

#include <algorithm>
#include <map>
#include <utility>

#include "carnot/core/base/check.h"

namespace carnot {
namespace {

template <class Key>
std::vector<std::vector<int>> members_by(std::span<const Trajectory> trajectories, Key key) {
  std::map<decltype(key(trajectories.front())), std::vector<int>> members;
  for (std::size_t i = 0; i < trajectories.size(); ++i)
    if (trajectories[i].leaf().is_included()) members[key(trajectories[i])].push_back(static_cast<int>(i));
  std::vector<std::vector<int>> all;
  for (auto& entry : members) all.push_back(std::move(entry.second));
  return all;
}

}  // namespace

std::vector<std::vector<int>> members_by_group(std::span<const Trajectory> trajectories) {
  return members_by(trajectories, [](const Trajectory& one) { return one.group_index; });
}

std::vector<std::vector<int>> members_by_step(std::span<const Trajectory> trajectories) {
  return members_by(trajectories, [](const Trajectory& one) { return one.group->step; });
}

std::vector<std::vector<int>> members_by_tree(std::span<const Trajectory> trajectories) {
  return members_by(trajectories, [](const Trajectory& one) { return std::pair(one.group_index, one.tree_index); });
}

int response_begin(const Trajectory& trajectory) {
  return trajectory.num_turns() > 0 ? trajectory.turn(0).sampled_begin : 0;
}

std::vector<bool> in_response(const Trajectory& trajectory) {
  for (int k = 0; k < trajectory.num_turns(); ++k)
    if (trajectory.turn(k).context == Context::Fresh) return trajectory.sampled();
  std::vector<bool> inside(trajectory.num_tokens(), true);
  std::fill_n(inside.begin(), response_begin(trajectory), false);
  return inside;
}

std::vector<double> rewards_of(const CreditTable& table, std::span<const int> members) {
  std::vector<double> rewards;
  for (int i : members) rewards.push_back(table[i].total_reward());
  return rewards;
}

std::span<double> sampled_part(std::vector<double>& column, const Trajectory& trajectory, int k) {
  CARNOT_CHECK_EQ(column.size(), static_cast<std::size_t>(trajectory.num_tokens()));
  return std::span(column).subspan(trajectory.sampled_begin(k), trajectory.turn(k).num_sampled());
}

void add_to_turn(std::vector<double>& column, const Trajectory& trajectory, int k, double value) {
  for (double& x : sampled_part(column, trajectory, k)) x += value;
}

void add_to_all_turns(std::vector<double>& column, const Trajectory& trajectory, double value) {
  for (int k = 0; k < trajectory.num_turns(); ++k) add_to_turn(column, trajectory, k, value);
}

CreditTable run_credit(std::span<const CreditRule> chain, std::span<const Trajectory> trajectories) {
  CreditTable table = fresh_credit(trajectories);
  for (const CreditRule& rule : chain) rule.apply(trajectories, table);
  return table;
}

}  // namespace carnot
