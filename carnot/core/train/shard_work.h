// train/shard_work.h -- an update shared out among ranks: which of them computes which micro-batches, and where the
// gradients go.
//
// With one shard there is nothing to share: gradients accumulate in the parameters, and an optimizer has everything.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/collectives/collectives.h"
#include "carnot/core/collectives/gradient_exchange.h"
#include "carnot/core/nn/model.h"
#include "carnot/core/optim/optimizer.h"
#include "carnot/core/optim/options.h"
#include "carnot/core/train/options.h"

namespace carnot {

/// Whether a group of this many ranks can share the recipe's steps: it must divide train.virtual_shards.
Status check_ranks(const TrainOptions& options, int ranks);

/// Parts into which so many ranks cut an update.
int num_shards(const TrainOptions& options, int ranks);

class ShardWork {
 public:
  /// `collectives` must outlive it. REQUIRES: check_ranks().
  ShardWork(Collectives& collectives, const TrainOptions& options);

  Collectives& collectives() { return collectives_; }
  int num_shards() const { return shards_; }

  /// An optimizer of these weights, which takes what accumulate() leaves. Outlived by this.
  std::unique_ptr<Optimizer> make_optimizer(std::vector<Weight> weights, const OptimizerOptions& options);

  /// Calls body(b) for each micro-batch b of this rank's shards, whose one backward pass leaves its gradients in the
  /// parameters of all optimizers that were made here. Those of a shard's last micro-batch leave while that pass goes
  /// on. `rows` is what each micro-batch costs. Returns the micro-batches' ranks.
  std::vector<int> accumulate(std::span<const std::int64_t> rows, const std::string& what,
                              const std::function<void(std::size_t)>& body);

 private:
  bool begin_final(const std::string& what);

  Collectives& collectives_;
  int shards_;
  ShardSum sum_;
  std::vector<std::unique_ptr<GradientExchange>> exchanges_;  ///< one for each optimizer; none with one shard
};

std::vector<Weight> optimizer_weights(const std::vector<NamedTensor>& tensors);

}  // namespace carnot
