// rollout/scorer.h -- signals by forward passes over finished trajectories: columns of log-probabilities, entropies,
// energies and values, and the information gain of turns.
//
// Sequences are packed into micro-batches without padding. A turn that several trajectories share is measured once.
// Leaves that do not count are skipped; their own turns hold NaN. Nothing here needs or makes gradients.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "carnot/data/measurement.h"
#include "carnot/data/tree.h"
#include "carnot/nn/model.h"
#include "carnot/nn/value_model.h"
#include "carnot/text/tokenizer.h"

namespace carnot {

struct ScoreOptions {
  int max_tokens = 4096;   ///< rows of a forward pass; a longer sequence gets a pass of its own
  double temperature = 1;  ///< that the rollout sampled at; 0 (greedy) counts as 1
};

/// LogProbOld and EntropyOld: the policy before its first update on these data.
void score_old_policy(const Model& policy, std::span<Group> groups, const ScoreOptions& options);

/// The same columns without a pass: what the engine measured while it sampled. REQUIRES: the rollout's columns.
void reuse_rollout_statistics(std::span<Group> groups);

/// LogProbReference and EntropyReference at the temperature; EnergyReference = -logsumexp of the raw logits.
void score_reference(const Model& reference, std::span<Group> groups, const ScoreOptions& options);

/// Value: the critic's, of the context that each sampled token continues.
void score_values(const ValueModel& critic, std::span<Group> groups, const ScoreOptions& options);

/// The text between a turn and the answer that is scored after it (IGPO). Where the context has opened the think
/// tag itself, a leading "<think>" is left out. Its tokens count in the context and not in the mean; a blank at its end
/// is encoded with the answer.
struct AnswerLead {
  std::string text = "<think> Now there's enough information to answer </think> <answer> \\boxed{ ";
  std::string think_tag = "think";
};

/// Turn::info_gain and Group::query_baseline. The gain of a turn that another follows is the score of the answer (the
/// group's first) after the turn and its observation, minus the score one turn earlier; a last turn has none. Groups
/// without an answer are left alone. Tokens of the answer are encoded alone, so that none straddles the lead.
void score_info_gain(const Model& policy, const Tokenizer& tokenizer, std::span<Group> groups, const AnswerLead& lead,
                     const InfoGainOptions& gain, const ScoreOptions& options);

/// How far two measurements of the sampled tokens are apart, over leaves that count: LogProbRollout and LogProbOld.
struct LogProbMismatch {
  std::int64_t tokens = 0;
  std::int64_t bit_equal = 0;
  double mean_absolute = 0;  ///< nats
  double largest = 0;        ///< nats
  double kl = 0;             ///< mean of rollout - old: KL(rollout, old) as the sampled tokens estimate it
};
LogProbMismatch log_prob_mismatch(std::span<const Group> groups);

}  // namespace carnot
