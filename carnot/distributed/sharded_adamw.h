// distributed/sharded_adamw.h -- AdamW whose moments and master weights are shared out among the ranks, as the
// gradients are (ZeRO-1 and 2, Rajbhandari et al. 2020).
//
// The owner of a slice of the gradients updates that slice of the weights, and all gather the weights, bucket by
// bucket: what a plain exchange sends of gradients. The norm is added up from the same chunks in the same order, and
// stochastic rounding is keyed by elements, so the weights are those of one AdamW that has everything, in every bit.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "carnot/distributed/collectives.h"
#include "carnot/distributed/gradient_exchange.h"
#include "carnot/optim/adamw_parts.h"
#include "carnot/optim/optimizer.h"

namespace carnot {

class ShardedAdamW : public Optimizer {
 public:
  /// `collectives` and `exchange`, which is that of the same parameters, must outlive it. The tensors are updated in
  /// place, on all ranks.
  ShardedAdamW(Collectives& collectives, GradientExchange& exchange, Parameters parameters,
               const AdamWOptions& options);

  /// By the sums of the exchange, all rounds of which were added; on all ranks alike.
  StepReport step(double learning_rate) override;

  Parameters state() override;
  Status load_state(const Parameters& tensors, std::int64_t num_updates, std::int64_t num_skipped) override;

  std::int64_t num_updates() const override { return own_.num_updates(); }
  std::int64_t num_skipped() const override { return own_.num_skipped(); }

 private:
  /// Part of a parameter in the own slice.
  struct Place {
    std::size_t parameter = 0;
    IndexRange in_parameter{}, in_slice{};
  };
  /// What is kept of a parameter beside its values.
  struct Kind {
    std::string suffix{};  ///< of its name in the state
    at::ScalarType type = at::kFloat;
  };
  std::vector<Place> own_places() const;
  std::vector<WeightPart> own_parts() const;
  std::vector<Kind> kinds() const;
  bool has_kind(const at::Tensor& parameter, const Kind& kind) const;
  double global_norm(const std::vector<at::Tensor>& gradients, const std::string& what);
  void gather_weights(const std::string& what);
  /// All ranks' slices of this kind, as one row, which the first rank gets.
  at::Tensor gather_kind(const Kind& kind);
  /// Gathers each bucket of a row: part(bucket) is what this rank has of it, and take(bucket, gathered) gets the parts
  /// one after the other, by rank, as begin_gather() gives them.
  void gather_buckets(const std::function<at::Tensor(int)>& part,
                      const std::function<void(int, const at::Tensor&)>& take, const std::string& what);

  Collectives& collectives_;
  GradientExchange& exchange_;
  Parameters parameters_;
  AdamWOptions options_;
  std::vector<Place> places_;  ///< of the own slice
  AdamWParts own_;
};

}  // namespace carnot
