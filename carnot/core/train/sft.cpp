#include "carnot/core/train/sft.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "carnot/core/base/random.h"
#include "carnot/core/data/prefix_tree.h"
#include "carnot/core/data/trajectory.h"
#include "carnot/core/nn/expert_balance.h"
#include "carnot/core/nn/token_statistics.h"
#include "carnot/core/rollout/episode.h"
#include "carnot/core/rollout/log_prob_pass.h"
#include "carnot/core/train/step_gather.h"

namespace carnot {
namespace {

// No step needs more demonstrations than this; their tasks are numbered apart from those of other steps.
constexpr std::int64_t kTasksPerStep = 1 << 20;

/// A token that is predicted, once for all demonstrations that have it after the same ones.
struct Target {
  std::int64_t row = 0;  ///< that predicts it
  TokenId token = 0;
  double said = 0;  ///< demonstrations in which it was said
  double context = 0;
};

struct SftBatch {
  PrefixTree tree;
  std::vector<Target> targets;
  std::map<std::pair<std::int64_t, TokenId>, std::size_t> index_of;  ///< of a target, by row and token
};

/// What a demonstration's targets need: the tokens before the last one. With a weight of 0 the context's are no
/// targets.
std::span<const TokenId> fed_tokens(const Demonstration& one, double context_weight) {
  std::size_t end = one.tokens.size();
  while (end > 1 && context_weight == 0 && !one.is_said[end - 1]) --end;
  return std::span(one.tokens).first(end > 0 ? end - 1 : 0);
}

void add(SftBatch& batch, const Demonstration& one, std::span<const TokenId> fed, double context_weight, bool share) {
  const std::vector<std::int64_t> rows = share ? batch.tree.add(fed) : batch.tree.add_alone(fed);
  for (std::size_t i = 1; i <= fed.size(); ++i) {
    if (!one.is_said[i] && context_weight == 0) continue;
    const auto [at, is_new] = batch.index_of.try_emplace({rows[i - 1], one.tokens[i]}, batch.targets.size());
    if (is_new) batch.targets.push_back({.row = rows[i - 1], .token = one.tokens[i]});
    Target& target = batch.targets[at->second];
    (one.is_said[i] ? target.said : target.context) += 1;
  }
}

std::int64_t num_tokens(std::span<const Demonstration> demonstrations) {
  std::int64_t tokens = 0;
  for (const Demonstration& one : demonstrations) tokens += std::ssize(one.tokens);
  return tokens;
}

/// So small that each shard can have about as many tokens.
std::vector<SftBatch> micro_batches(std::span<const Demonstration> demonstrations, double context_weight,
                                    const SftTrainer::Setting& setting, int shards) {
  const std::int64_t tokens = num_tokens(demonstrations);
  const std::int64_t of_shard = shards > 1 ? (tokens + shards - 1) / shards : setting.micro_batch_tokens;
  const std::int64_t most = std::min<std::int64_t>(setting.micro_batch_tokens, of_shard);
  std::vector<SftBatch> batches(1);
  for (const Demonstration& one : demonstrations) {
    const auto fed = fed_tokens(one, context_weight);
    const PrefixTree& tree = batches.back().tree;
    const int rows = setting.share_prefixes ? tree.num_new_rows(fed) : static_cast<int>(fed.size());
    if (tree.num_rows() > 0 && tree.num_rows() + rows > most) batches.emplace_back();
    add(batches.back(), one, fed, context_weight, setting.share_prefixes);
  }
  return batches;
}

template <class Number>
at::Tensor tensor_of(const std::vector<Target>& targets, Number Target::* member) {
  std::vector<std::int64_t> values;
  for (const Target& target : targets) values.push_back(target.*member);
  return at::tensor(values, at::kLong);
}

/// What was said by whoever demonstrates, and all else; how evenly experts are used.
enum SftLoss { kSaid, kContext, kRouter, kNumSftLosses };

/// By target, in nats.
at::Tensor losses(const Model& model, const SftBatch& batch, ExpertBalance* balance = nullptr) {
  const std::vector<TokenId>& tokens = batch.tree.tokens();
  const at::Tensor hidden =
      model.hidden(at::tensor(std::vector<std::int64_t>(tokens.begin(), tokens.end()), at::kLong),
                   at::tensor(batch.tree.positions(), at::kLong), attention_plan(batch.tree), balance);
  const at::Tensor rows = hidden.index_select(0, tensor_of(batch.targets, &Target::row).to(hidden.device()));
  const auto statistics = token_statistics(rows, model, tensor_of(batch.targets, &Target::token));
  return -statistics.logprob_T.to(at::kCPU, at::kDouble);
}

BatchReport report_of(const SftBatch& batch, const at::Tensor& loss) {
  const at::Tensor values = loss.detach().contiguous();
  BatchReport report{.metrics = std::vector<MetricSum>(kNumSftLosses)};
  for (std::size_t i = 0; i < batch.targets.size(); ++i) {
    const auto count = [&](SftLoss which, double times) {
      report.metrics[which].sum += times * values.data_ptr<double>()[i];
      report.metrics[which].count += times;
    };
    count(kSaid, batch.targets[i].said);
    count(kContext, batch.targets[i].context);
  }
  return report;
}

double weight_of(const Target& target, double context_weight) { return target.said + context_weight * target.context; }

/// What a step's micro-batches together have.
struct SftTotals {
  double weight = 0, rows = 0;
};

/// One forward and backward pass; the gradient is that of sum(weight * loss) / totals.weight, and of the experts'
/// balance by the batch's share of the rows.
BatchReport accumulate(const Model& model, const SftBatch& batch, const SftTrainer::Setting& setting,
                       const SftTotals& totals) {
  std::vector<double> weights;
  for (const Target& target : batch.targets)
    weights.push_back(weight_of(target, setting.options.context_weight) / totals.weight);
  const double share = batch.tree.num_rows() / totals.rows;
  ExpertBalance balance(setting.router_aux_coefficient * share);
  const at::Tensor loss = losses(model, batch, setting.router_aux_coefficient > 0 ? &balance : nullptr);
  (loss * at::tensor(weights, at::kDouble)).sum().backward();
  BatchReport report = report_of(batch, loss);
  report.metrics[kRouter] = {.sum = share * balance.loss(), .count = share};
  return report;
}

/// A token's mean over all micro-batches.
double mean_loss(const std::vector<BatchReport>& reports, SftLoss which) {
  MetricSum all;
  for (const BatchReport& report : reports) {
    all.sum += report.metrics.at(which).sum;
    all.count += report.metrics.at(which).count;
  }
  return all.count > 0 ? all.sum / all.count : 0;
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
  const auto batches = micro_batches(setting_.rows->held_out, 0, setting_, group.size());
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
  const double context_weight = setting_.options.context_weight;
  const auto batches = micro_batches(demonstrations, context_weight, setting_, work_.num_shards());
  SftTotals totals;
  SftMetrics metrics{.tokens = num_tokens(demonstrations), .demonstrations = std::ssize(demonstrations)};
  std::vector<std::int64_t> rows;
  for (const SftBatch& batch : batches) {
    for (const Target& target : batch.targets) totals.weight += weight_of(target, context_weight);
    rows.push_back(batch.tree.num_rows());
    totals.rows += static_cast<double>(rows.back());
  }
  const std::string what = "gradients of SFT step " + std::to_string(step + 1);
  std::vector<BatchReport> reports(batches.size());
  const std::vector<int> owners = work_.accumulate(
      rows, what, [&](std::size_t b) { reports[b] = accumulate(model_, batches[b], setting_, totals); });
  gather_reports(work_.collectives(), owners, reports, what);
  metrics.learning_rate = learning_rate_at(setting_.options.schedule, step, setting_.options.steps);
  const StepReport report = optimizer_.step(metrics.learning_rate);
  metrics.grad_norm = report.grad_norm;
  metrics.skipped = report.skipped;
  metrics.loss = mean_loss(reports, kSaid);
  metrics.context_loss = mean_loss(reports, kContext);
  metrics.router_aux_loss = mean_loss(reports, kRouter);
  return metrics;
}

}  // namespace carnot
