// filter/filter.h -- which groups take part in the update. Decides on raw rewards, before any credit.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "carnot/data/tree.h"

namespace carnot {

struct GroupFilter {
  std::string name{};
  /// True per group that stays. Empty function: all stay.
  std::function<std::vector<bool>(std::span<const Group> groups)> keep{};
  /// Ask for further rollouts until the step's groups are full again (DAPO), at most this many batches; 0: never.
  int max_refills = 0;
};

/// DAPO: drops groups whose members all have the same raw score (exact equality; a group of one stays).
GroupFilter drop_zero_variance(int max_refills);

/// StarPO-S: keeps the max(1, floor(share * groups)) groups with the largest sample standard deviation of the
/// penalised score, in their original order; ties go to the earlier group. share = 1 keeps all.
GroupFilter keep_most_varied(double share);

/// The same with the smallest deviation: RAGEN's counter-experiment.
GroupFilter keep_least_varied(double share);

/// Marks the leaves of groups that do not stay as dropped. Returns the number of groups that stay.
int apply_filter(const GroupFilter& filter, std::vector<Group>& groups);

}  // namespace carnot
