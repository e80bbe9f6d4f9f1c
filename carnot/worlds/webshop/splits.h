// worlds/webshop/splits.h -- which goals train and which evaluate, and in what order, as three code bases have it.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "carnot/core/env/epoch_order.h"
#include "carnot/worlds/python/numpy_random.h"

namespace carnot {

enum class ShopSplits : std::uint8_t {
  Ragen,      ///< goals permuted once more by random.Random(42); instance s is goal s of its range, around the end
  VerlAgent,  ///< the first 500 evaluate, the rest trains; each step draws different goals by numpy's RandomState
  WebShop,    ///< the authors' ranges; training goes through its goals in another order each epoch
};
enum class ShopValidation : std::uint8_t { Validation, Test };

/// Ranges of goals: test from 0, validation behind it, training the rest. 500 and 1000 as published; of fewer than 3000
/// goals a tenth and a fifth.
struct ShopRanges {
  std::size_t test = 0;
  std::size_t validation = 0;
  std::size_t all = 0;

  explicit ShopRanges(std::size_t goals);
  std::size_t train_begin() const { return test + validation; }
};

/// numpy.random.RandomState.permutation(count).
std::vector<std::size_t> numpy_permutation(NumpyRandomState& random, std::size_t count);

struct ShopOrderOptions {
  ShopSplits splits = ShopSplits::Ragen;
  ShopValidation validation = ShopValidation::Validation;
  int draws_per_step = 16;  ///< VerlAgent: goals that a training step draws, none twice
  std::uint64_t seed = 0;   ///< VerlAgent, WebShop
};

/// Goals by task number. Any thread.
class ShopOrder {
 public:
  /// REQUIRES: at least three goals.
  ShopOrder(std::size_t goals, const ShopOrderOptions& options);

  std::size_t train(std::int64_t index);
  std::size_t validation(std::int64_t index);
  /// Of how many validation is, before it begins again.
  std::size_t num_validation() const;
  /// RAGEN's validation instance of this seed; with other splits, validation task number `seed`.
  std::size_t instance(std::uint64_t seed);

 private:
  std::size_t permuted(std::size_t begin, std::size_t count, std::uint64_t index) const;
  std::size_t drawn(std::int64_t index);

  ShopOrderOptions options_;
  ShopRanges ranges_;
  std::vector<std::size_t> permutation_{};  // Ragen: of all goals; VerlAgent: of those that evaluate
  EpochOrder epochs_;
  std::mutex mutex_{};
  NumpyRandomState draws_;
  std::vector<std::size_t> drawn_{};  // of the steps so far
};

}  // namespace carnot
