// credit/filter.h -- which groups take part in the update. Decides on raw rewards, before any credit.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/unread_keys.h"
#include "carnot/core/data/tree.h"

namespace carnot {

/// A filter and its options. A method sets the defaults of a recipe's `filter.*` keys, which can follow any base.
struct GroupFilter {
  std::string name = "none";  ///< one of filters()
  double keep_share = 0.25;   ///< of keep_most_varied and keep_least_varied; in (0, 1]
  /// Maximum batches of further rollouts until the step has enough groups again (DAPO); 0: never.
  int max_refills = 0;

  /// True for each group that is kept. REQUIRES: `name` is one of filters().
  std::vector<bool> keep(std::span<const Group> groups) const;

  void fields(FieldVisitor& visit);
  UnreadKeys unread_keys() const;
};

struct FilterEntry {
  std::string_view name;
  std::string_view summary;
  std::vector<bool> (*keep)(std::span<const Group> groups, const GroupFilter& options);
};

/// All filters.
const std::vector<FilterEntry>& filters();

/// DAPO: drops groups whose members all have the same raw score (exact equality; a group of one is kept).
GroupFilter drop_zero_variance(int max_refills);

/// StarPO-S: keeps the max(1, floor(share * groups)) groups with the largest sample standard deviation of the penalised
/// score, in their original order; ties go to the earlier group. share = 1 keeps all.
GroupFilter keep_most_varied(double share);

/// The same with the smallest deviation: RAGEN's counter-experiment.
GroupFilter keep_least_varied(double share);

/// Marks the leaves of the other groups as dropped. Returns the number of groups that are kept.
int apply_filter(const GroupFilter& filter, std::vector<Group>& groups);

}  // namespace carnot
