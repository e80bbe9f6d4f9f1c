// collectives/sharded_optimizer.h -- an optimizer whose moments and master weights are shared out among the ranks, as
// the gradients are (ZeRO-1 and 2, Rajbhandari et al. 2020).
//
// The owner of a slice of the gradients updates that slice of the weights, and all gather the weights, bucket by
// bucket: what a plain exchange sends of gradients. Matrices whose rule needs them whole (Muon) are computed by one
// rank each, in turn. The norm is added up from the same chunks in the same order, and stochastic rounding is keyed by
// elements, so the weights are those of one optimizer that has everything, in every bit.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "carnot/core/collectives/collectives.h"
#include "carnot/core/collectives/gradient_exchange.h"
#include "carnot/core/optim/optimizer.h"
#include "carnot/core/optim/weight_parts.h"

namespace carnot {

class ShardedOptimizer : public Optimizer {
 public:
  /// `collectives` and `exchange`, which is that of the same weights, must outlive it. The weights are updated in
  /// place, on all ranks.
  ShardedOptimizer(Collectives& collectives, GradientExchange& exchange, std::vector<Weight> weights,
                   const OptimizerOptions& options);

  /// By the sums of the exchange, all rounds of which were added; on all ranks alike.
  StepReport step(double learning_rate) override;

  Tensors state() override;
  Status load_state(const Tensors& tensors, std::int64_t num_updates, std::int64_t num_skipped) override;

  std::int64_t num_updates() const override { return own_.num_updates(); }
  std::int64_t num_skipped() const override { return own_.num_skipped(); }

 private:
  /// Part of a weight in the own slice; WeightParts has it under the same number.
  struct Place {
    std::size_t weight = 0;
    IndexRange in_weight{}, in_slice{};
  };
  std::vector<Place> own_places() const;
  std::vector<WeightPart> own_parts() const;
  std::vector<KeptTensor> kept(const Weight& weight) const;
  double global_norm(const std::vector<at::Tensor>& gradients, const std::string& what);

  /// Updates the own parts of these weights, at most one for each rank, whose rule needs them whole.
  void update_matrices(std::span<const std::size_t> weights, const std::vector<at::Tensor>& gradients,
                       const std::string& what);
  /// Where a rank's parts of a weight lie in it.
  std::vector<IndexRange> ranges(std::size_t weight, int rank) const;
  /// Of the own parts, one after the other, on the host.
  at::Tensor own_direction(std::size_t weight, const std::vector<at::Tensor>& gradients);
  /// From the parts of all ranks, a row each; on the host.
  at::Tensor finished_direction(std::size_t weight, const at::Tensor& parts);
  void move_own_parts(std::size_t weight, const at::Tensor& directions);
  /// Gives rows[r], padded to sizes[r], to rank r. Row q of the result is what rank q gave.
  at::Tensor exchange_padded(std::span<const at::Tensor> rows, std::span<const std::int64_t> sizes,
                             const std::string& what);

  void gather_weights(const std::string& what);
  /// What all ranks keep under this suffix, by weight, on the first rank. Undefined where a weight has no such thing.
  std::vector<at::Tensor> gather_kept(const KeptTensor& kept);
  /// Gathers each bucket of a row: part(bucket) is what this rank has of it, and take(bucket, gathered) gets the parts
  /// one after the other, by rank, as begin_gather() gives them.
  void gather_buckets(const std::function<at::Tensor(int)>& part,
                      const std::function<void(int, const at::Tensor&)>& take, const std::string& what);

  Collectives& collectives_;
  GradientExchange& exchange_;
  std::vector<Weight> weights_;
  OptimizerOptions options_;
  std::vector<Place> places_;  ///< of the own slice
  WeightParts own_;
};

}  // namespace carnot
