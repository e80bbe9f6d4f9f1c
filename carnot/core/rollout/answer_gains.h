// rollout/answer_gains.h -- from the likelihoods of a group's answer to the information gain of its turns.
#pragma once

#include <optional>
#include <vector>

#include "carnot/core/data/measurement.h"
#include "carnot/core/data/tree.h"

namespace carnot {

/// Mean log-probability of the tokens of a group's answer, by where it was put.
struct AnswerLogProbs {
  std::optional<double> prompt{};                           ///< after the prompt
  std::vector<std::vector<std::optional<double>>> turns{};  ///< after a turn and its observation; by tree and turn
};

/// Turn::info_gain and Group::query_baseline. The gain of a turn that another follows is the likelihood of the answer
/// after the turn and its observation, minus the likelihood one turn earlier; a last turn has none. Leaves that do not
/// count are skipped. False if a log-probability is missing; then nothing is written.
bool write_info_gain(Group& group, const AnswerLogProbs& log_probs, const InfoGainOptions& gain);

}  // namespace carnot
