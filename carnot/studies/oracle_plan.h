// studies/oracle_plan.h -- which trajectories an oracle evaluates, and the states in them.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "carnot/core/data/credit_table.h"
#include "carnot/core/data/trajectory.h"
#include "carnot/core/text/tokenizer.h"
#include "carnot/studies/oracle_values.h"

namespace carnot {

/// A place where continuations start: before a turn's response, or after the first `begun` of its tokens.
struct OracleState {
  int trajectory = 0;
  int turn = 0;
  int begun = 0;
};

struct OraclePlan {
  std::vector<OracleState> states{};
  std::vector<OracleTurn> turns{};  ///< of the chosen trajectories, in their order
};

/// `count` of the included trajectories (all if there are fewer), with each depth and outcome in its proportion: they
/// are ordered by number of turns and score, at random within, and every so many is taken. Ascending.
std::vector<int> choose_trajectories(std::span<const Trajectory> all, int count, std::uint64_t seed);

/// Every turn boundary of the chosen trajectories and, with a think tag, the end of every thought. Trajectories of a
/// group that have the same prompt share its state.
OraclePlan plan_oracle(std::span<const Trajectory> all, std::span<const int> chosen, const Tokenizer& tokenizer,
                       const std::string& think_tag);

/// What the advantages of turns are as credit: each on its turn's sampled tokens. Of the evaluated trajectories whose
/// advantages are all known, by their numbers.
std::map<int, Credit> oracle_credit(std::span<const Trajectory> all, const OraclePlan& plan,
                                    std::span<const StateValue> values);

}  // namespace carnot
