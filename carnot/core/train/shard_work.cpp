#include "carnot/core/train/shard_work.h"

#include <algorithm>
#include <utility>

#include "carnot/core/collectives/sharded_optimizer.h"
#include "carnot/core/optim/local_optimizer.h"
#include "carnot/core/rank/shares.h"

namespace carnot {

Status check_ranks(const TrainOptions& options, int ranks) {
  if (options.virtual_shards % ranks == 0) return Done{};
  return Error{"train.virtual_shards: " + std::to_string(options.virtual_shards) + " cannot be shared evenly by " +
               std::to_string(ranks) + " ranks; expected a multiple of their number, or 0"};
}

int num_shards(const TrainOptions& options, int ranks) {
  return options.virtual_shards > 0 && options.gradient_reduction == "ordered" ? options.virtual_shards : ranks;
}

std::vector<Weight> optimizer_weights(const std::vector<NamedTensor>& tensors) {
  std::vector<Weight> weights;
  for (const NamedTensor& named : tensors)
    weights.push_back({.name = named.name, .values = named.tensor, .is_table = named.is_table});
  return weights;
}

ShardWork::ShardWork(Collectives& collectives, const TrainOptions& options)
    : collectives_(collectives),
      shards_(carnot::num_shards(options, collectives.size())),
      sum_(options.gradient_reduction == "fast" ? ShardSum::Fast : ShardSum::Ordered) {}

std::unique_ptr<Optimizer> ShardWork::make_optimizer(std::vector<Weight> weights, const OptimizerOptions& options) {
  if (shards_ == 1) return std::make_unique<LocalOptimizer>(weights, options);
  std::vector<at::Tensor> tensors;
  for (const Weight& weight : weights) tensors.push_back(weight.values);
  exchanges_.push_back(std::make_unique<GradientExchange>(collectives_, std::move(tensors), shards_, sum_));
  return std::make_unique<ShardedOptimizer>(collectives_, *exchanges_.back(), std::move(weights), options);
}

bool ShardWork::begin_final(const std::string& what) {
  // The newest first: a critic's gradients are final before the policy's.
  return std::all_of(exchanges_.rbegin(), exchanges_.rend(),
                     [&](const auto& exchange) { return exchange->begin_final(what); });
}

std::vector<int> ShardWork::accumulate(std::span<const std::int64_t> rows, const std::string& what,
                                       const std::function<void(std::size_t)>& body) {
  std::vector<int> owners = shares_by_size(rows, shards_);
  for (int shard = collectives_.rank(); shard < shards_; shard += collectives_.size()) {
    const auto last = std::find(owners.rbegin(), owners.rend(), shard).base();  // behind the last of this shard
    for (auto owner = owners.begin(); owner != last; ++owner) {
      if (*owner != shard) continue;
      collectives_.check();
      if (owner + 1 == last)
        for (const auto& exchange : exchanges_) exchange->expect_last_pass([this, &what] { begin_final(what); });
      body(static_cast<std::size_t>(owner - owners.begin()));
    }
    for (auto exchange = exchanges_.rbegin(); exchange != exchanges_.rend(); ++exchange) (*exchange)->add_round(what);
  }
  for (int& owner : owners) owner %= collectives_.size();
  return owners;
}

}  // namespace carnot
