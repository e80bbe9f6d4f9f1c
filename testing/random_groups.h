// testing/random_groups.h -- random groups for tests: ragged turns, branches, lone members, failures, signals.
#pragma once

#include <vector>

#include "carnot/core/base/random.h"
#include "carnot/core/data/credit_table.h"
#include "carnot/core/data/tree.h"

namespace carnot::testing {

struct RandomGroupOptions {
  int groups = 4;
  int max_members = 6;  ///< trajectories of a group, leaves of all its trees together; at least 1
  int max_turns = 5;    ///< of a trajectory
  int max_tokens = 6;   ///< of each part of a turn: prompt, sampled, observation. Any part may be empty
  int vocabulary = 100;
  double branch_share = 0.4;         ///< members that branch off an earlier one instead of starting a tree
  double zero_variance_share = 0.2;  ///< groups whose members all have the same score and no penalties
  double invalid_share = 0.1;        ///< members that end InfraFailed
  double dropped_share = 0;          ///< groups that a filter dropped
  double unsampled_share = 0.05;     ///< turns without a sampled token
  double fresh_share = 0.2;          ///< groups whose turns render their own prompts
  int anchors = 3;                   ///< number of different state keys; 0: no turn has one
  std::vector<Column> columns{};     ///< every tree gets these, on sampled tokens only
};

/// Groups that satisfy every invariant of data/tree.h. Log-probabilities are <= 0, entropies >= 0; a turn's info gain,
/// if the group has any, is in [-1, 1].
std::vector<Group> random_groups(RandomStream& random, const RandomGroupOptions& options = {});

/// Numbered as trajectories(groups): random values on sampled tokens, starting values elsewhere.
CreditTable random_credit(RandomStream& random, const std::vector<Group>& groups);

/// Every column there is.
std::vector<Column> all_columns();

}  // namespace carnot::testing
