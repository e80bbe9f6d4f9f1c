#include "carnot/filter/filter.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "carnot/base/check.h"
#include "carnot/base/statistics.h"

namespace carnot {
namespace {

/// `value` of every leaf that is valid. What an earlier filter dropped still tells how varied its group is.
template <class Value>
std::vector<double> of_valid_leaves(const Group& group, Value value) {
  std::vector<double> values;
  for (const Tree& tree : group.trees)
    for (std::size_t i = 0; i < tree.leaves.size(); ++i)
      if (tree.leaves[i].valid()) values.push_back(value(tree, static_cast<int>(i)));
  return values;
}

/// sign 1 prefers large deviations, -1 small ones.
std::vector<bool> by_deviation(std::span<const Group> groups, double share, double sign) {
  std::vector<double> deviation;
  for (const Group& group : groups) deviation.push_back(sign * std_sample(of_valid_leaves(group, penalised_score)));
  std::vector<std::size_t> order(groups.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return deviation[a] != deviation[b] ? deviation[a] > deviation[b] : a < b;
  });
  const auto wanted = static_cast<std::size_t>(std::floor(share * static_cast<double>(groups.size())));
  std::vector<bool> keep(groups.size(), false);
  for (std::size_t i = 0; i < std::min(std::max<std::size_t>(wanted, 1), groups.size()); ++i) keep[order[i]] = true;
  return keep;
}

}  // namespace

GroupFilter drop_zero_variance(int max_refills) {
  const auto keep = [](std::span<const Group> groups) {
    std::vector<bool> stays;
    for (const Group& group : groups) {
      const std::vector<double> scores = of_valid_leaves(
          group, [](const Tree& tree, int i) { return tree.leaves[static_cast<std::size_t>(i)].score; });
      stays.push_back(scores.size() == 1 || !all_equal(scores));
    }
    return stays;
  };
  return {.name = "drop_zero_variance", .keep = keep, .max_refills = max_refills};
}

GroupFilter keep_most_varied(double share) {
  CARNOT_CHECK(share > 0 && share <= 1, "share of groups to keep");
  return {.name = "keep_most_varied",
          .keep = [share](std::span<const Group> groups) { return by_deviation(groups, share, 1); }};
}

GroupFilter keep_least_varied(double share) {
  CARNOT_CHECK(share > 0 && share <= 1, "share of groups to keep");
  return {.name = "keep_least_varied",
          .keep = [share](std::span<const Group> groups) { return by_deviation(groups, share, -1); }};
}

int apply_filter(const GroupFilter& filter, std::vector<Group>& groups) {
  if (!filter.keep) return static_cast<int>(groups.size());
  const std::vector<bool> keep = filter.keep(groups);
  CARNOT_CHECK_EQ(keep.size(), groups.size());
  int staying = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    staying += keep[g] ? 1 : 0;
    if (keep[g]) continue;
    for (Tree& tree : groups[g].trees)
      for (Leaf& leaf : tree.leaves) leaf.dropped = true;
  }
  return staying;
}

}  // namespace carnot
