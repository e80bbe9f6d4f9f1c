// rollout/info_gain.h -- the information gain of turns: how much likelier each one makes the ground truth
// (IGPO, arXiv:2510.14967).
#pragma once

#include <span>
#include <string>

#include "carnot/data/measurement.h"
#include "carnot/data/tree.h"
#include "carnot/nn/model.h"
#include "carnot/rollout/log_prob_pass.h"
#include "carnot/text/tokenizer.h"

namespace carnot {

/// The text between a turn and the answer whose likelihood is measured after it (IGPO). Where the context has opened
/// the think tag itself, a leading "<think>" is left out. Its tokens count in the context and not in the mean; a blank
/// at its end is encoded with the answer.
struct AnswerLead {
  std::string text = "<think> Now there's enough information to answer </think> <answer> \\boxed{ ";
  std::string think_tag = "think";
};

/// Turn::info_gain and Group::query_baseline. The gain of a turn that another follows is the likelihood of the answer
/// (the group's first) after the turn and its observation, minus the likelihood one turn earlier; a last turn has none.
/// Groups without an answer are left alone. Tokens of the answer are encoded alone, so that none straddles the lead.
void measure_info_gain(const Model& policy, const Tokenizer& tokenizer, std::span<Group> groups, const AnswerLead& lead,
                       const InfoGainOptions& gain, const LogProbPassOptions& options);

}  // namespace carnot
