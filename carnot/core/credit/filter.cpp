#include "carnot/core/credit/filter.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "carnot/core/base/check.h"
#include "carnot/core/base/statistics.h"

namespace carnot {
namespace {

/// `value` of every valid leaf. Leaves dropped by an earlier filter still count for how varied their group is.
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

std::vector<bool> all_stay(std::span<const Group> groups, const GroupFilter&) {
  return std::vector<bool>(groups.size(), true);
}

std::vector<bool> with_variance(std::span<const Group> groups, const GroupFilter&) {
  std::vector<bool> stays;
  for (const Group& group : groups) {
    const std::vector<double> scores =
        of_valid_leaves(group, [](const Tree& tree, int i) { return tree.leaves[i].score; });
    stays.push_back(scores.size() == 1 || !all_equal(scores));
  }
  return stays;
}

std::vector<bool> most_varied(std::span<const Group> groups, const GroupFilter& options) {
  return by_deviation(groups, options.keep_share, 1);
}

std::vector<bool> least_varied(std::span<const Group> groups, const GroupFilter& options) {
  return by_deviation(groups, options.keep_share, -1);
}

}  // namespace

const std::vector<FilterEntry>& filters() {
  static const std::vector<FilterEntry> all = {
      {"none", "all groups take part", all_stay},
      {"drop_zero_variance", "groups whose raw scores are all equal are dropped (DAPO)", with_variance},
      {"keep_most_varied", "the share of groups whose scores vary most takes part (StarPO-S)", most_varied},
      {"keep_least_varied", "the share whose scores vary least (RAGEN's counter-experiment)", least_varied},
  };
  return all;
}

std::vector<bool> GroupFilter::keep(std::span<const Group> groups) const {
  const auto& all = filters();
  const auto found = std::find_if(all.begin(), all.end(), [&](const FilterEntry& entry) { return entry.name == name; });
  CARNOT_CHECK(found != all.end(), "the name of a filter");
  CARNOT_CHECK(keep_share > 0 && keep_share <= 1, "share of groups to keep");
  return found->keep(groups, *this);
}

void GroupFilter::fields(FieldVisitor& visit) {
  std::vector<std::string> names;
  std::string help;
  for (const FilterEntry& entry : filters()) {
    names.emplace_back(entry.name);
    help += (help.empty() ? "" : "; ") + std::string(entry.name) + ": " + std::string(entry.summary);
  }
  visit.field("name", name, help, one_of(names));
  visit.field("keep_share", keep_share, "share of groups that keep_most_varied and keep_least_varied keep; 1: all",
              {.low = 0, .high = 1, .open_low = true});
  visit.field("max_refills", max_refills, "batches of further rollouts for groups that were dropped; 0: none",
              at_least(0));
}

UnreadKeys GroupFilter::unread_keys() const {
  UnreadKeys unread;
  if (name == "none" || name == "drop_zero_variance") unread.add({"keep_share"}, "filter.name is " + name);
  if (name == "none") unread.add({"max_refills"}, "filter.name is none");
  return unread;
}

GroupFilter drop_zero_variance(int max_refills) { return {.name = "drop_zero_variance", .max_refills = max_refills}; }

GroupFilter keep_most_varied(double share) { return {.name = "keep_most_varied", .keep_share = share}; }

GroupFilter keep_least_varied(double share) { return {.name = "keep_least_varied", .keep_share = share}; }

int apply_filter(const GroupFilter& filter, std::vector<Group>& groups) {
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
