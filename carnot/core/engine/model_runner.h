// engine/model_runner.h -- what the engine needs of a model: one forward pass over paged rows, logits of a few rows,
// copies of blocks and states.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "carnot/core/cache/block_manager.h"
#include "carnot/core/nn/attention_plan.h"
#include "carnot/core/nn/logit_rows.h"

namespace carnot {

/// Shapes: T rows of one engine step, B rows that sample, H hidden, V vocabulary.
class ModelRunner {
 public:
  virtual ~ModelRunner() = default;

  virtual int vocab_size() const = 0;
  virtual CacheSize cache_size() const = 0;

  /// Hidden states of the rows [T, H], of which each sequence has a consecutive run in reading order. Writes the rows'
  /// keys and values into their blocks, and advances their states; a sequence without a past starts a new one. tokens_T
  /// and positions_T: int64 on the CPU. A row's bits may not depend on the other rows; where they do (some GPU
  /// kernels), sampled tokens depend on the batch.
  virtual at::Tensor hidden(const at::Tensor& tokens_T, const at::Tensor& positions_T,
                            const std::vector<PagedRows>& sequences) = 0;

  /// B rows of V logits, each to be divided by its temperature; the caller may write into them.
  virtual LogitRows logits(const at::Tensor& hidden_BH, std::span<const float> inverse_temperature_B) = 0;

  /// The cache's block `to` gets the content of `from`, in every layer that has such blocks.
  virtual void copy_block(int from, int to) = 0;
  virtual void copy_window_block(int, int) {}

  /// The cache's state `to` gets the content of `from`, in every layer.
  virtual void copy_state(int, int) {}
};

}  // namespace carnot
