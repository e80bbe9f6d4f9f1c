// testing/absent_members.h -- the promise of every credit rule: members that do not count change nothing and get
// nothing.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "carnot/core/data/credit_table.h"

namespace carnot::testing {

using Chain = std::function<CreditTable(std::span<const Trajectory>)>;

/// Runs `chain` on `groups` and on a copy without the leaves that do not count. Returns what differs, a sentence
/// each: a bit of a counting member's credit, or anything that an absent member received.
std::vector<std::string> changes_by_absent_members(const std::vector<Group>& groups, const Chain& chain);

/// A copy without the leaves that do not count. Their turns stay.
std::vector<Group> without_absent_members(std::vector<Group> groups);

/// How many leaves do not count.
int absent_members(const std::vector<Group>& groups);

}  // namespace carnot::testing
