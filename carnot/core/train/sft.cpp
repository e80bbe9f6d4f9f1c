#include "carnot/core/train/sft.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <string>
#include <utility>

#include "carnot/core/base/random.h"
#include "carnot/core/data/trajectory.h"
#include "carnot/core/nn/token_statistics.h"
#include "carnot/core/rollout/episode.h"
#include "carnot/core/train/step_gather.h"

namespace carnot {
namespace {

// No step needs more demonstrations than this; their tasks are numbered apart from those of other steps.
constexpr std::int64_t kTasksPerStep = 1 << 20;

/// Sequences one after the other; each token but a sequence's first is a target of the row before it.
struct SftBatch {
  std::vector<std::int64_t> tokens, positions, target_rows, targets;
  std::vector<double> weights;
  std::vector<bool> said;  ///< by the script
  PackedAttention plan{};
};

void add(SftBatch& batch, const Trajectory& demonstration, double context_weight) {
  const std::vector<TokenId> tokens = demonstration.tokens();
  const std::vector<bool> said = demonstration.sampled();
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i + 1 < tokens.size()) {
      batch.target_rows.push_back(static_cast<std::int64_t>(batch.tokens.size()));
      batch.targets.push_back(tokens[i + 1]);
      batch.weights.push_back(said[i + 1] ? 1.0 : context_weight);
      batch.said.push_back(said[i + 1]);
    }
    batch.tokens.push_back(tokens[i]);
    batch.positions.push_back(static_cast<std::int64_t>(i));
  }
  batch.plan.offsets.push_back(static_cast<int>(batch.tokens.size()));
}

/// So small that each shard can have about as many tokens.
std::vector<SftBatch> micro_batches(const std::vector<Tree>& demonstrations, const SftOptions& options,
                                    int micro_batch_tokens, int shards) {
  std::int64_t tokens = 0;
  for (const Tree& tree : demonstrations) tokens += num_tokens(tree);
  if (shards > 1)
    micro_batch_tokens = static_cast<int>(std::min<std::int64_t>(micro_batch_tokens, (tokens + shards - 1) / shards));
  std::vector<SftBatch> batches(1);
  for (const Tree& tree : demonstrations) {
    Group group{.trees = {tree}};
    const Trajectory view = trajectory(group, 0, 0, 0);
    const bool full = !batches.back().tokens.empty() &&
                      static_cast<int>(batches.back().tokens.size()) + view.num_tokens() > micro_batch_tokens;
    if (full) batches.emplace_back();
    add(batches.back(), view, options.context_weight);
  }
  return batches;
}

/// What was said by the script, and all else.
enum SftLoss { kSaid, kContext, kNumSftLosses };

/// One forward and backward pass; the gradient is that of sum(weight * loss) / total_weight.
BatchReport accumulate(const Model& model, const SftBatch& batch, double total_weight) {
  const at::Tensor hidden =
      model.hidden(at::tensor(batch.tokens, at::kLong), at::tensor(batch.positions, at::kLong), batch.plan);
  const at::Tensor rows = hidden.index_select(0, at::tensor(batch.target_rows, at::kLong).to(hidden.device()));
  const auto statistics = token_statistics(rows, model, at::tensor(batch.targets, at::kLong));
  const at::Tensor loss = -statistics.logprob_T.to(at::kCPU, at::kDouble);
  const at::Tensor weights = at::tensor(batch.weights, at::kDouble) / total_weight;
  (loss * weights).sum().backward();
  const at::Tensor values = loss.detach().contiguous();
  BatchReport report{.metrics = std::vector<MetricSum>(kNumSftLosses)};
  for (std::size_t i = 0; i < batch.said.size(); ++i) {
    MetricSum& sum = report.metrics[batch.said[i] ? kSaid : kContext];
    sum.sum += values.data_ptr<double>()[i];
    sum.count += 1;
  }
  return report;
}

/// A token's mean over all micro-batches.
double mean_loss(const std::vector<BatchReport>& reports, SftLoss which) {
  MetricSum all;
  for (const BatchReport& report : reports) {
    all.sum += report.metrics.at(which).sum;
    all.count += report.metrics.at(which).count;
  }
  return all.sum / std::max(1.0, all.count);
}

}  // namespace

Result<std::vector<Tree>> SftTrainer::demonstrations(std::int64_t step) const {
  const double progress =
      static_cast<double>(step) / static_cast<double>(std::max<std::int64_t>(1, setting_.options.steps));
  std::vector<Tree> trees;
  for (std::int64_t i = 0, tokens = 0; tokens < setting_.options.batch_tokens && i < kTasksPerStep; ++i) {
    const std::int64_t index = step * kTasksPerStep + i;
    CARNOT_ASSIGN_OR_RETURN(
        auto tree, demonstrate(setting_.environment, setting_.chat,
                               {.index = index,
                                .progress = progress,
                                .seed = derive_seed(setting_.seed, "demonstration", static_cast<std::uint64_t>(index)),
                                .episode = setting_.episode}));
    tokens += num_tokens(tree);
    trees.push_back(std::move(tree));
  }
  return trees;
}

Result<SftMetrics> SftTrainer::step(std::int64_t step) {
  CARNOT_ASSIGN_OR_RETURN(const auto trees, demonstrations(step));
  const auto batches = micro_batches(trees, setting_.options, setting_.micro_batch_tokens, work_.num_shards());
  double total_weight = 0;
  SftMetrics metrics{.demonstrations = static_cast<std::int64_t>(trees.size())};
  std::vector<std::int64_t> rows;
  for (const SftBatch& batch : batches) {
    for (double weight : batch.weights) total_weight += weight;
    rows.push_back(static_cast<std::int64_t>(batch.tokens.size()));
    metrics.tokens += rows.back();
  }
  const std::string what = "gradients of SFT step " + std::to_string(step + 1);
  std::vector<BatchReport> reports(batches.size());
  const std::vector<int> owners =
      work_.accumulate(rows, what, [&](std::size_t b) { reports[b] = accumulate(model_, batches[b], total_weight); });
  gather_reports(work_.collectives(), owners, reports, what);
  metrics.learning_rate = learning_rate_at(setting_.options.schedule, step, setting_.options.steps);
  const StepReport report = optimizer_.step(metrics.learning_rate);
  metrics.grad_norm = report.grad_norm;
  metrics.skipped = report.skipped;
  metrics.loss = mean_loss(reports, kSaid);
  metrics.context_loss = mean_loss(reports, kContext);
  return metrics;
}

}  // namespace carnot
