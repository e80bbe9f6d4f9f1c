// engine/decoder_runner.h -- a decoder and its KV cache, run for the engine.
#pragma once

#include "carnot/core/engine/model_runner.h"
#include "carnot/core/nn/kv_cache.h"
#include "carnot/core/nn/model.h"

namespace carnot {

class DecoderRunner : public ModelRunner {
 public:
  /// A cache of KvCache's size, in the model's type, on its device. Sequences beyond the number of states wait for one
  /// another and are computed again from their start. The model must outlive the runner. Between steps its weights may
  /// change; what the cache then holds is stale: release every sequence first, or let the engine forget what it has
  /// computed.
  DecoderRunner(const Model& model, const CacheSize& size);

  int vocab_size() const override { return model_->config().vocab_size; }
  CacheSize cache_size() const override { return cache_.size(); }
  at::Tensor hidden(const at::Tensor& tokens_T, const at::Tensor& positions_T,
                    const std::vector<PagedRows>& sequences) override;
  LogitRows logits(const at::Tensor& hidden_BH, std::span<const float> inverse_temperature_B) override;
  void copy_block(int from, int to) override { cache_.copy_block(from, to); }
  void copy_window_block(int from, int to) override { cache_.copy_window_block(from, to); }
  void copy_state(int from, int to) override { cache_.copy_state(from, to); }

  std::int64_t cache_bytes() const { return cache_.bytes(); }

  /// KvCache::give_back_memory(). REQUIRES: no sequence holds a block.
  void give_back_memory() { cache_.give_back_memory(); }

 private:
  const Model* model_;
  KvCache cache_;
};

}  // namespace carnot
