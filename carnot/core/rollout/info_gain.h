// rollout/info_gain.h -- the information gain of turns: how much more likely each makes the ground truth (IGPO,
// arXiv:2510.14967).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "carnot/core/data/measurement.h"
#include "carnot/core/data/tree.h"
#include "carnot/core/nn/model.h"
#include "carnot/core/rollout/answer_prompt.h"
#include "carnot/core/rollout/log_prob_pass.h"
#include "carnot/core/text/tokenizer.h"

namespace carnot {

/// Mean log-probability of the tokens of a group's answer, by the context that it follows.
struct AnswerLogProbs {
  std::optional<double> prompt{};                           ///< after the prompt
  std::vector<std::vector<std::optional<double>>> turns{};  ///< after a turn and its observation; by tree and turn
};

/// Writes Turn::info_gain and Group::query_baseline. The gain of a turn is the likelihood of the answer after the turn
/// and its observation, minus the likelihood one turn earlier; the last turn has no gain. Leaves that do not count are
/// skipped. False if a log-probability is missing; then nothing is written.
bool write_info_gain(Group& group, const AnswerLogProbs& log_probs, const InfoGainOptions& gain);

/// Fills Turn::info_gain and Group::query_baseline (write_info_gain()) by a pass over the groups' trajectories, with
/// the group's first answer. Groups without an answer are unchanged, and so are those whose rollout has measured it
/// (Group::query_baseline).
void measure_info_gain(const Model& policy, const Tokenizer& tokenizer, std::span<Group> groups, const AnswerLead& lead,
                       const InfoGainOptions& gain, const LogProbPassOptions& options);

/// Removes what was measured.
void clear_info_gain(std::span<Group> groups);

}  // namespace carnot
