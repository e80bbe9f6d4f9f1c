// rollout/info_gain.h -- the information gain of turns: how much likelier each one makes the ground truth
// (IGPO, arXiv:2510.14967).
#pragma once

#include <span>

#include "carnot/core/data/measurement.h"
#include "carnot/core/data/tree.h"
#include "carnot/core/nn/model.h"
#include "carnot/core/rollout/answer_prompt.h"
#include "carnot/core/rollout/log_prob_pass.h"
#include "carnot/core/text/tokenizer.h"

namespace carnot {

/// Fills Turn::info_gain and Group::query_baseline (answer_gains.h) by a pass over the groups' trajectories, with the
/// group's first answer. Groups without one are left alone, and so are those whose rollout has measured it
/// (Group::query_baseline).
void measure_info_gain(const Model& policy, const Tokenizer& tokenizer, std::span<Group> groups, const AnswerLead& lead,
                       const InfoGainOptions& gain, const LogProbPassOptions& options);

/// Forgets what was measured.
void clear_info_gain(std::span<Group> groups);

}  // namespace carnot
