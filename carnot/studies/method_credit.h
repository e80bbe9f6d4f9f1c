// studies/method_credit.h -- the credit that several methods give the same rollouts, each by its own chain.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/data/credit_table.h"
#include "carnot/core/data/tree.h"
#include "carnot/studies/opened_policy.h"

namespace carnot {

struct MethodCredit {
  std::string name{};
  CreditTable table{};  ///< in the order of trajectories(groups)
};

struct MethodCredits {
  std::vector<MethodCredit> methods{};
  std::vector<std::string> left_out{};  ///< of `all`, those that cannot be had here, with the reason
};

/// Loads the critic and the reference that the checkpoint has. `reference`: a checkpoint whose policy takes the
/// reference's place; empty: the checkpoint's own.
Status load_companions(OpenedPolicy& policy, const std::filesystem::path& reference);

/// `methods`: a list as `carnot compare` takes it (contestants.h), each with the configuration of the policy's run and
/// `overrides`. Measures on the groups what they need. Branching and group filters are not applied: every method gives
/// credit to every trajectory. A method that was named and cannot be had is an error.
Result<MethodCredits> method_credits(OpenedPolicy& policy, std::vector<Group>& groups, std::string_view methods,
                                     const std::vector<std::string>& overrides);

/// Mean of advantage times weight over tokens [begin, end) of a trajectory; 0 if there are none.
double mean_credit(const Credit& credit, int begin, int end);

}  // namespace carnot
