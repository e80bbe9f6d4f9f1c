// rollout/log_prob_pass.h -- the log-prob pass: token sequences through a model in packed micro-batches, without
// gradients, and the log-probability of chosen tokens.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "carnot/core/data/prefix_tree.h"
#include "carnot/core/data/tokens.h"
#include "carnot/core/nn/attention_plan.h"
#include "carnot/core/nn/model.h"

namespace carnot {

struct LogProbPassOptions {
  int max_tokens = 4096;   ///< rows of a forward pass; a longer sequence gets its own pass
  double temperature = 1;  ///< at which the rollout sampled; 0 (greedy) counts as 1
};

/// One sequence and the tokens in it that are measured, by offset, ascending. REQUIRES: no target is 0.
struct MeasuredSequence {
  std::vector<TokenId> tokens{};
  std::vector<int> targets{};
};

/// A micro-batch. Each target has the row that predicts it; rows after the last target are not computed.
struct LogProbBatch {
  std::vector<std::int64_t> tokens{}, positions{}, rows{}, targets{};
  PackedAttention plan{};
  std::size_t first_target = 0;  ///< number of targets in earlier batches

  at::Tensor tokens_R() const;
  at::Tensor positions_R() const;
  at::Tensor rows_T() const;
  at::Tensor targets_T() const;
};

/// Which rows attend to which when a prefix tree's rows are computed.
PackedAttention attention_plan(const PrefixTree& tree);

/// In the order of the sequences; a sequence without targets is left out. A prefix that sequences of a batch share is
/// computed once, which changes no bit.
std::vector<LogProbBatch> log_prob_batches(std::span<const MeasuredSequence> sequences, int max_tokens);

/// By target, over all sequences.
struct TargetStatistics {
  std::vector<double> log_prob{}, entropy{}, logsumexp{};
};
TargetStatistics measure_targets(const Model& model, std::span<const MeasuredSequence> sequences, int max_tokens,
                                 double temperature);

/// The tensor's values on the CPU, in double.
std::vector<double> to_doubles(const at::Tensor& values_T);

}  // namespace carnot
