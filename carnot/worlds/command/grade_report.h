// worlds/command/grade_report.h -- the same trajectories under two rewards, as a table for people.
#pragma once

#include <span>
#include <string>

#include "carnot/core/data/tree.h"

namespace carnot {

/// Mean score, success and groups with spread, old against new; groups that gain or lose spread; the trajectories whose
/// score changes most, with the end of their responses. Over trajectories that are valid in both. REQUIRES: groups and
/// trajectories of `old` and `now` are the same, in the same order; a response for each trajectory.
std::string grade_report(std::span<const Group> old, std::span<const Group> now,
                         std::span<const std::string> responses);

}  // namespace carnot
