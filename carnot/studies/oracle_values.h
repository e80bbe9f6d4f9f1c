// studies/oracle_values.h -- values of states by continuations, and the advantages of turns, thoughts and actions that
// follow from them. Numbers only.
//
// V(x) is the policy's mean score from state x. A turn's advantage is V after it minus V before it; its thought's, V
// where the thought ends minus V before the turn; its action's, the rest. After the last turn V is the trajectory's own
// score, so that a trajectory's advantages sum to its score minus V of its prompt.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "carnot/core/base/statistics.h"

namespace carnot {

/// The scores of continuations from one state, those without a score (lost to the infrastructure) left out.
struct StateValue {
  int count = 0;
  double mean = 0;        ///< NaN without scores
  double first_half = 0;  ///< means of two disjoint halves; NaN where one has no score
  double second_half = 0;
  Interval interval{};  ///< 95 %, of the mean
  double standard_error = 0;
};

/// The two scores that a study's trajectories can have, where it has no others: intervals are Wilson's then, otherwise
/// Student's t.
struct ScoreLevels {
  double low = 0;
  double high = 0;
};

StateValue value_of(std::span<const std::optional<double>> scores, const std::optional<ScoreLevels>& levels);

/// The levels, if the scores have exactly two values or one.
std::optional<ScoreLevels> score_levels(std::span<const std::vector<std::optional<double>>> scores);

/// One response of a trajectory, by the numbers of its states.
struct OracleTurn {
  int trajectory = 0;
  int turn = 0;
  int before = -1;   ///< state
  int inside = -1;   ///< where its thought ends; -1: not known
  int after = -1;    ///< state; -1: the trajectory ends
  double score = 0;  ///< of the trajectory
  int thought = 0;   ///< tokens of the response that the thought has, where it is known
};

struct OracleAdvantage {
  double turn = 0;
  double thought = 0;  ///< NaN where the end of the thought is not known
  double action = 0;   ///< the same
};

enum class OracleHalf { Both, First, Second };

/// NaN where a value is.
OracleAdvantage advantage_of(const OracleTurn& turn, std::span<const StateValue> values,
                             OracleHalf half = OracleHalf::Both);

/// How well advantages by half of the continuations agree.
struct Reliability {
  int count = 0;
  double signal_deviation = 0;    ///< of the true advantages: the root of the halves' covariance, 0 if negative
  std::optional<double> value{};  ///< of advantages by all continuations (split-half, Spearman-Brown)
};

/// REQUIRES: equal sizes; finite numbers.
Reliability reliability_of(std::span<const double> first, std::span<const double> second);

/// A correlation with estimates of this reliability, as it would be with the true values: r / sqrt(reliability), within
/// [-1, 1]. None without a correlation or a positive reliability.
std::optional<double> disattenuated(const std::optional<double>& correlation, const Reliability& reliability);

}  // namespace carnot
