#include "carnot/core/train/sft.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <iterator>
#include <span>
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
  std::vector<bool> said;
  PackedAttention plan{};
};

void add(SftBatch& batch, const Demonstration& one, double context_weight) {
  for (std::size_t i = 0; i < one.tokens.size(); ++i) {
    if (i + 1 < one.tokens.size()) {
      const bool is_said = one.is_said[i + 1];
      batch.target_rows.push_back(static_cast<std::int64_t>(batch.tokens.size()));
      batch.targets.push_back(one.tokens[i + 1]);
      batch.weights.push_back(is_said ? 1.0 : context_weight);
      batch.said.push_back(is_said);
    }
    batch.tokens.push_back(one.tokens[i]);
    batch.positions.push_back(static_cast<std::int64_t>(i));
  }
  batch.plan.offsets.push_back(static_cast<int>(batch.tokens.size()));
}

/// So small that each shard can have about as many tokens.
std::vector<SftBatch> micro_batches(std::span<const Demonstration> demonstrations, double context_weight,
                                    int micro_batch_tokens, int shards) {
  std::int64_t tokens = 0;
  for (const Demonstration& one : demonstrations) tokens += std::ssize(one.tokens);
  const std::int64_t of_shard = shards > 1 ? (tokens + shards - 1) / shards : micro_batch_tokens;
  const std::int64_t most = std::min<std::int64_t>(micro_batch_tokens, of_shard);
  std::vector<SftBatch> batches(1);
  for (const Demonstration& one : demonstrations) {
    const std::int64_t held = std::ssize(batches.back().tokens);
    if (held > 0 && held + std::ssize(one.tokens) > most) batches.emplace_back();
    add(batches.back(), one, context_weight);
  }
  return batches;
}

/// What was said by whoever demonstrates, and all else.
enum SftLoss { kSaid, kContext, kNumSftLosses };

/// By target, in nats.
at::Tensor losses(const Model& model, const SftBatch& batch) {
  const at::Tensor hidden =
      model.hidden(at::tensor(batch.tokens, at::kLong), at::tensor(batch.positions, at::kLong), batch.plan);
  const at::Tensor rows = hidden.index_select(0, at::tensor(batch.target_rows, at::kLong).to(hidden.device()));
  const auto statistics = token_statistics(rows, model, at::tensor(batch.targets, at::kLong));
  return -statistics.logprob_T.to(at::kCPU, at::kDouble);
}

BatchReport report_of(const SftBatch& batch, const at::Tensor& loss) {
  const at::Tensor values = loss.detach().contiguous();
  BatchReport report{.metrics = std::vector<MetricSum>(kNumSftLosses)};
  for (std::size_t i = 0; i < batch.said.size(); ++i) {
    MetricSum& sum = report.metrics[batch.said[i] ? kSaid : kContext];
    sum.sum += values.data_ptr<double>()[i];
    sum.count += 1;
  }
  return report;
}

/// One forward and backward pass; the gradient is that of sum(weight * loss) / total_weight.
BatchReport accumulate(const Model& model, const SftBatch& batch, double total_weight) {
  const at::Tensor loss = losses(model, batch);
  const at::Tensor weights = at::tensor(batch.weights, at::kDouble) / total_weight;
  (loss * weights).sum().backward();
  return report_of(batch, loss);
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

SftTrainer::SftTrainer(Model& model, ShardWork& work, Optimizer& optimizer, const Setting& setting)
    : model_(model), work_(work), optimizer_(optimizer), setting_(setting) {
  if (setting.rows && !setting.rows->train.empty())
    order_.emplace(setting.rows->train.size(), setting.seed, "sft_epoch");
}

Result<std::vector<Demonstration>> SftTrainer::scripted(std::int64_t step) const {
  const double progress =
      static_cast<double>(step) / static_cast<double>(std::max<std::int64_t>(1, setting_.options.steps));
  std::vector<Demonstration> all;
  for (std::int64_t i = 0, tokens = 0; tokens < setting_.options.batch_tokens && i < kTasksPerStep; ++i) {
    const std::int64_t index = step * kTasksPerStep + i;
    CARNOT_ASSIGN_OR_RETURN(
        auto tree, demonstrate(setting_.environment, setting_.chat,
                               {.index = index,
                                .progress = progress,
                                .seed = derive_seed(setting_.seed, "demonstration", static_cast<std::uint64_t>(index)),
                                .episode = setting_.episode}));
    tokens += num_tokens(tree);
    const Group group{.trees = {std::move(tree)}};
    std::ranges::move(demonstrations_of(trajectory(group, 0, 0, 0)), std::back_inserter(all));
  }
  return all;
}

std::vector<Demonstration> SftTrainer::rows_of(std::int64_t step) {
  const std::vector<Demonstration>& train = setting_.rows->train;
  if (step < next_step_) next_step_ = next_row_ = 0;
  std::vector<Demonstration> rows;
  for (; next_step_ <= step; ++next_step_) {
    rows.clear();
    for (std::int64_t tokens = 0; tokens < setting_.options.batch_tokens && rows.size() < train.size(); ++next_row_) {
      rows.push_back(train[order_->row(next_row_)]);
      tokens += std::ssize(rows.back().tokens);
    }
  }
  return rows;
}

double SftTrainer::held_out_loss() const {
  const at::NoGradGuard no_gradients;
  Collectives& group = work_.collectives();
  const auto batches = micro_batches(setting_.rows->held_out, setting_.options.context_weight,
                                     setting_.micro_batch_tokens, group.size());
  std::vector<BatchReport> reports(batches.size());
  std::vector<int> owners;
  for (std::size_t b = 0; b < batches.size(); ++b) {
    owners.push_back(static_cast<int>(b) % group.size());
    if (owners.back() == group.rank()) reports[b] = report_of(batches[b], losses(model_, batches[b]));
  }
  gather_reports(group, owners, reports, "the held-out loss");
  return mean_loss(reports, kSaid);
}

Result<SftMetrics> SftTrainer::step(std::int64_t step) {
  CARNOT_ASSIGN_OR_RETURN(const auto demonstrations,
                          order_ ? Result<std::vector<Demonstration>>(rows_of(step)) : scripted(step));
  const auto batches =
      micro_batches(demonstrations, setting_.options.context_weight, setting_.micro_batch_tokens, work_.num_shards());
  double total_weight = 0;
  SftMetrics metrics{.demonstrations = std::ssize(demonstrations)};
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
