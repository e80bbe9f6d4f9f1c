// collectives/gradient_exchange.h -- gradients of several ranks added in an order that their number does not change,
// each rank keeping the sums of its own slice only (ZeRO-2, Rajbhandari et al. 2020).
//
// A step's work is cut into virtual shards. Their number is fixed, and the ranks take them in turn: rank r computes the
// shards r, r + size, r + 2 size ... The gradients of a shard travel in buckets: each goes to its owners as soon as it
// is final, while the backward pass continues, and is then given up. The owner of a part adds what it got in the order
// of the shards. So every element is s0 + s1 + s2 + ..., from the left, whether one rank computes all shards or each
// rank one; and next to its own slice of the sums a rank holds at most the gradient of one shard, and a few buckets.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "carnot/core/collectives/collectives.h"
#include "carnot/core/collectives/in_flight.h"
#include "carnot/core/rank/flat_layout.h"

namespace carnot {

/// How the shards' gradients become one.
enum class ShardSum {
  Ordered,  ///< as above
  Fast,     ///< by the library's all-reduce: less traffic with several shards a rank, and bits that depend on the ranks
};

/// Elements that travel at a time in a group of this many ranks. Of each rank's part there is a chunk at least, and
/// messages are long enough for a network to carry them well.
std::int64_t bucket_elements(int ranks);

class GradientExchange {
 public:
  /// `collectives` must outlive it. The parameters are those of the optimizer, in an order that is the same on all
  /// ranks. REQUIRES: shards is a multiple of the number of ranks; the parameters are float64, or none is.
  GradientExchange(Collectives& collectives, std::vector<at::Tensor> parameters, int shards,
                   ShardSum sum = ShardSum::Ordered);
  ~GradientExchange();
  GradientExchange(const GradientExchange&) = delete;
  GradientExchange& operator=(const GradientExchange&) = delete;

  int num_rounds() const { return shards_ / collectives_.size(); }
  /// The shard that this rank computes in round number `round` of a step.
  int shard_of_round(int round) const { return round * collectives_.size() + collectives_.rank(); }

  /// The next backward pass is the last of this rank's shard: what it leaves in a parameter is final. After each, it
  /// calls `changed`, which may call begin_final().
  void expect_last_pass(std::function<void()> changed);

  /// Begins to exchange the buckets that are final, from the row's end to its beginning, as far as others have ended:
  /// it waits for no other rank. True if these were the last ones of the round. Of several exchanges of one group, all
  /// ranks must begin all of one before any of the next.
  bool begin_final(const std::string& what);

  /// Takes the gradients of this rank's shard out of the parameters, which are final now, and begins to exchange those
  /// that have not left yet. A parameter without a gradient counts as zeros. Called num_rounds() times, by all ranks.
  void add_round(const std::string& what);

  /// The sums over all shards of the own slice of the row (layout()), in float32 (float64 for float64 parameters), and
  /// begins again. REQUIRES: all rounds were added.
  at::Tensor finish();

  /// How the parameters lie in the row, and which parts of it belong to which rank.
  const FlatLayout& layout() const { return layout_; }

 private:
  class FinalGradient;

  bool travels() const { return how_ == ShardSum::Ordered || rounds_ + 1 == num_rounds(); }
  bool is_final(int bucket) const;
  at::Tensor take_gradients(int bucket);
  void begin(int bucket, const std::string& what);
  void add(int bucket, bool first, const at::Tensor& received);
  void forget_passes();

  Collectives& collectives_;
  std::vector<at::Tensor> parameters_;
  int shards_;
  ShardSum how_;
  FlatLayout layout_;
  at::ScalarType type_ = at::kFloat;
  at::Tensor sum_{};           ///< of the own slice, over the rounds so far
  std::vector<bool> final_{};  ///< by parameter, in this round
  bool expects_ = false;       ///< the last pass of a shard
  int left_ = 0;               ///< buckets of this round that have not left
  int rounds_ = 0;
  InFlight in_flight_{};
};

}  // namespace carnot
