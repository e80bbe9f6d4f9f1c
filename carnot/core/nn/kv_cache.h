// nn/kv_cache.h -- the tensors of the KV cache: what every layer keeps of each position, block by block.
//
// carnot/core/cache tracks which sequence owns which block; here blocks are numbers. A block holds kBlockTokens
// positions. Keys are stored transposed inside a block ([head_dim][token]), so that the scores of one query with a
// block are a sum of vectors; values are stored [token][head_dim]. Layers with a window may have fewer blocks, with
// numbers of their own. A short convolution keeps one row of hidden_size
// numbers of a position as values, and no keys. The gated delta rule keeps nothing of a position: a sequence has one
// state for all of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "carnot/core/base/aligned_memory.h"
#include "carnot/core/cache/block_manager.h"
#include "carnot/core/nn/model_config.h"

namespace carnot {

class KvCache {
 public:
  /// Memory for blocks in every layer, and for states and window blocks if the model has them, zeros; on the CPU it is
  /// taken from the system as it is written. The window is the model's. `options` set dtype and device.
  KvCache(const ModelConfig& config, const CacheSize& size, const at::TensorOptions& options);

  const CacheSize& size() const { return size_; }  ///< without what the model has not
  std::int64_t bytes() const;

  /// Before blocks are written, at first or after give_back_memory(). On the CPU, memory that was freed returns to the
  /// system before a large cache takes its own, so that the peak is that of update or generation and not their sum.
  void take_memory();

  /// Between rollouts: forgets what the blocks hold and, on the CPU, returns a large cache's memory to the system until
  /// blocks are written again.
  void give_back_memory();

  /// Whether a cache of this size is returned: taking the pages of a small one again would cost more than it holds.
  static bool is_given_back(std::int64_t bytes) { return bytes >= static_cast<std::int64_t>(kMappedBytes); }

  /// [blocks, kv_heads, head_dim, kBlockTokens]; undefined of a layer without attention
  const at::Tensor& keys(int layer) const { return keys_[layer]; }
  /// [blocks, kv_heads, kBlockTokens, head_dim]; of a convolution [blocks, 1, kBlockTokens, hidden_size]
  const at::Tensor& values(int layer) const { return values_[layer]; }

  /// States of the gated delta rule [states, numbers], which kernel/recurrent/gated_delta.h lays out, in the type
  /// of its sums; undefined of other layers.
  const at::Tensor& states(int layer) const { return states_[layer]; }
  /// The last rows that its convolution has read, oldest first: [states, taps - 1, ModelConfig::delta_width()].
  const at::Tensor& last_rows(int layer) const { return last_rows_[layer]; }

  /// Copies the content of one block to another, in every layer that has such blocks (a shared block is copied before
  /// it is written).
  void copy_block(int from, int to);
  void copy_window_block(int from, int to);
  /// The same of a state.
  void copy_state(int from, int to);

 private:
  void add_layer(const ModelConfig& config, const LayerKind& kind, const at::TensorOptions& options);
  void copy_block(int from, int to, bool of_window);
  bool is_large_on_cpu() const;
  /// use(tensor) for each of them.
  template <class Use>
  void for_each(const Use& use) const;

  CacheSize size_;
  bool on_cpu_;
  bool taken_ = false;
  std::vector<at::Tensor> keys_, values_, states_, last_rows_;  ///< by layer
  std::vector<bool> in_window_;                                 ///< whether a layer has window blocks
};

}  // namespace carnot
