// distributed/gradient_exchange.h -- gradients of several ranks added in an order that their number does not change.
//
// A step's work is cut into virtual shards. Their number is fixed, and the ranks take them in turn: rank r computes the
// shards r, r + size, r + 2 size ... After each round the ranks exchange slices, and the owner of a slice adds what it
// got in the order of the shards. So every element is s0 + s1 + s2 + ..., from the left, whether one rank computes all
// shards or each rank one; a rank holds the gradient of one shard at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "carnot/distributed/collectives.h"

namespace carnot {

/// How the shards' gradients become one.
enum class ShardSum {
  Ordered,  ///< as above
  Fast,     ///< by the library's all-reduce: less traffic with several shards a rank, and bits that depend on the ranks
};

class GradientExchange {
 public:
  /// `collectives` must outlive it. The parameters are those of the optimizer, in an order that is the same on all
  /// ranks. REQUIRES: shards is a multiple of the number of ranks; the parameters are float64, or none is.
  GradientExchange(Collectives& collectives, std::vector<at::Tensor> parameters, int shards,
                   ShardSum sum = ShardSum::Ordered);

  int num_rounds() const { return shards_ / collectives_.size(); }
  /// The shard that this rank computes in round number `round` of a step.
  int shard_of_round(int round) const { return round * collectives_.size() + collectives_.rank(); }

  /// Takes the gradients of this rank's shard out of the parameters. A parameter without a gradient counts as zeros.
  /// Called num_rounds() times, by all ranks.
  void add_round(const std::string& what);

  /// The sums over all shards of the own slice of the row (layout()), in float32 (float64 for float64 parameters), and
  /// begins anew. Good until the next add_round(). REQUIRES: all rounds were added.
  at::Tensor finish(const std::string& what);

  /// Memory for a row of numbers of a type that is no wider, between what finish() gave and the next add_round().
  at::Tensor spare_row(at::ScalarType type) const { return row_.view(type).slice(0, 0, layout_.size()); }

  /// How the parameters lie in the row, and which slice of it belongs to which rank.
  const FlatLayout& layout() const { return layout_; }

 private:
  void fill_row();

  Collectives& collectives_;
  std::vector<at::Tensor> parameters_;
  int shards_;
  ShardSum how_;
  FlatLayout layout_;
  at::Tensor row_;  ///< all gradients, one after the other
  at::Tensor sum_;  ///< of the own slice, over the rounds so far
  int rounds_ = 0;
};

}  // namespace carnot
