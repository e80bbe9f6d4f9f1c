#include "carnot/core/rollout/log_prob_pass.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include "carnot/core/base/check.h"
#include "carnot/core/nn/token_statistics.h"

namespace carnot {
namespace {

at::Tensor tensor_of(const std::vector<std::int64_t>& values) { return at::tensor(values, at::kLong); }

void append_to(std::vector<double>& to, const at::Tensor& values_T) {
  const std::vector<double> values = to_doubles(values_T);
  to.insert(to.end(), values.begin(), values.end());
}

}  // namespace

at::Tensor LogProbBatch::tokens_R() const { return tensor_of(tokens); }
at::Tensor LogProbBatch::positions_R() const { return tensor_of(positions); }
at::Tensor LogProbBatch::rows_T() const { return tensor_of(rows); }
at::Tensor LogProbBatch::targets_T() const { return tensor_of(targets); }

PackedAttention attention_plan(const PrefixTree& tree) {
  PackedAttention plan;
  for (const PrefixTree::Stretch& stretch : tree.stretches()) {
    plan.offsets.push_back(stretch.begin + stretch.rows);
    plan.parents.push_back(stretch.parent);
    plan.past.push_back(stretch.past);
  }
  return plan;
}

std::vector<LogProbBatch> log_prob_batches(std::span<const MeasuredSequence> sequences, int max_tokens) {
  std::vector<LogProbBatch> batches;
  PrefixTree tree;  // of the last batch
  const auto finish = [&] {
    if (batches.empty()) return;
    batches.back().tokens.assign(tree.tokens().begin(), tree.tokens().end());
    batches.back().positions = tree.positions();
    batches.back().plan = attention_plan(tree);
    tree = {};
  };
  std::size_t targets = 0;
  for (const MeasuredSequence& sequence : sequences) {
    if (sequence.targets.empty()) continue;
    CARNOT_CHECK_GT(sequence.targets.front(), 0);
    CARNOT_CHECK_LT(static_cast<std::size_t>(sequence.targets.back()), sequence.tokens.size());
    const auto fed = std::span(sequence.tokens).first(static_cast<std::size_t>(sequence.targets.back()));
    const bool full = !batches.empty() && tree.num_rows() + tree.num_new_rows(fed) > max_tokens;
    if (batches.empty() || full) {
      finish();
      batches.emplace_back();
      batches.back().first_target = targets;
    }
    LogProbBatch& batch = batches.back();
    const std::vector<std::int64_t> rows = tree.add(fed);
    for (int target : sequence.targets) {
      batch.rows.push_back(rows[static_cast<std::size_t>(target - 1)]);
      batch.targets.push_back(sequence.tokens[static_cast<std::size_t>(target)]);
    }
    targets += sequence.targets.size();
  }
  finish();
  return batches;
}

TargetStatistics measure_targets(const Model& model, std::span<const MeasuredSequence> sequences, int max_tokens,
                                 double temperature) {
  const at::NoGradGuard no_grad;
  TargetStatistics out;
  for (const LogProbBatch& batch : log_prob_batches(sequences, max_tokens)) {
    const at::Tensor hidden_RH = model.hidden(batch.tokens_R(), batch.positions_R(), batch.plan);
    const at::Tensor hidden_TH = hidden_RH.index_select(0, batch.rows_T().to(hidden_RH.device()));
    const TokenStatistics statistics =
        token_statistics(hidden_TH, model, batch.targets_T(), {.temperature = temperature});
    append_to(out.log_prob, statistics.logprob_T);
    append_to(out.entropy, statistics.entropy_T);
    append_to(out.logsumexp, statistics.logsumexp_T);
  }
  return out;
}

std::vector<double> to_doubles(const at::Tensor& values_T) {
  const at::Tensor values = values_T.to(at::kCPU, at::kDouble).contiguous();
  const auto* data = values.const_data_ptr<double>();
  return {data, data + values.numel()};
}

}  // namespace carnot
