// testing/random_step.h -- a step of random trajectories with credit, to be packed.
#pragma once

#include <numeric>
#include <vector>

#include "carnot/core/data/trajectory.h"
#include "testing/random_groups.h"

namespace carnot::testing {

struct RandomStep {
  std::vector<Group> groups;
  std::vector<Trajectory> all;
  CreditTable credit;
  std::vector<int> indices;
};

inline RandomStep random_step(RandomStream& random) {
  RandomStep step;
  step.groups = random_groups(random, {.dropped_share = 0.2,
                                       .columns = {Column::LogProbOld, Column::LogProbRollout, Column::LogProbReference,
                                                   Column::Value, Column::EntropyOld}});
  step.all = trajectories(step.groups);
  step.credit = random_credit(random, step.groups);
  step.indices.resize(step.all.size());
  std::iota(step.indices.begin(), step.indices.end(), 0);
  return step;
}

}  // namespace carnot::testing
