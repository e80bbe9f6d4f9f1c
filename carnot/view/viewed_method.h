// view/viewed_method.h -- what one method makes of trajectories, as the page holds it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "carnot/core/base/json.h"
#include "carnot/core/credit/chain_record.h"
#include "carnot/core/data/credit_table.h"
#include "carnot/core/data/trajectory.h"

namespace carnot {

/// What an optimizer step did to each token of a trajectory; lists are empty if nothing is known.
struct TokenStates {
  std::vector<double> ratio{};            ///< NaN where the step did not train the token, as in all lists
  std::vector<std::string> clip_state{};  ///< none, low, high, dual, limit; empty if it did not
  std::vector<double> gradient{};         ///< derivative of the step's loss with respect to the log-probability
  std::vector<double> kl_gradient{};      ///< the KL's part of it; empty without a KL term
  std::vector<double> unit_share{};       ///< share in the policy loss that a weight of 1 has
  std::vector<double> scaled_advantage{};
};

/// The lists of this name that `carnot credit --explain` wrote into a row of this many tokens; without them nothing.
/// REQUIRES: `row` is a line that was read as a rollout.
TokenStates states_in_row(std::string_view row, std::size_t tokens);

/// Lists are numbered as the trajectories of a file, or empty.
struct ViewedMethod {
  CreditTable credit{};
  std::vector<TokenStates> states{};
  std::vector<RuleRecord> chain{};
  std::vector<bool> included{};  ///< by its own filter; empty: as the leaves say
};

/// Credit of trajectory number `i`, token by token on the sampled ones, and the chain that led to it: each rule with
/// what it changed. An empty object if nothing is known.
OrderedJson credit_json(const ViewedMethod& method, std::size_t i, const Trajectory& trajectory);

}  // namespace carnot
