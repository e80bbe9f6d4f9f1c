#include "carnot/core/nn/kv_cache.h"

#include <ATen/Functions.h>

#include <utility>

#include "carnot/core/base/check.h"
#include "carnot/core/nn/cpu_memory.h"

namespace carnot {

KvCache::KvCache(const ModelConfig& config, int num_blocks, const at::TensorOptions& options)
    : num_blocks_(num_blocks) {
  CARNOT_CHECK_GT(num_blocks, 0);
  const at::TensorOptions plain = options.requires_grad(false);
  const auto zeros = [&](at::IntArrayRef shape) {
    return plain.device().is_cpu() ? untouched_zeros(shape, plain) : at::zeros(shape, plain);
  };
  for (int layer = 0; layer < config.num_layers; ++layer) {
    keys_.push_back(zeros({num_blocks, config.num_kv_heads, config.head_dim, kBlockTokens}));
    values_.push_back(zeros({num_blocks, config.num_kv_heads, kBlockTokens, config.head_dim}));
  }
}

bool KvCache::is_large_on_cpu() const { return keys_[0].device().is_cpu() && is_given_back(bytes()); }

void KvCache::take_memory() {
  if (!std::exchange(taken_, true) && is_large_on_cpu()) return_freed_memory();
}

void KvCache::give_back_memory() {
  taken_ = false;
  if (!is_large_on_cpu()) return;
  for (const auto* tensors : {&keys_, &values_})
    for (const at::Tensor& tensor : *tensors) carnot::give_back_memory(tensor);
}

std::int64_t KvCache::bytes() const {
  return static_cast<std::int64_t>(keys_.size()) * 2 * keys_[0].numel() * keys_[0].element_size();
}

void KvCache::copy_block(int from, int to) {
  for (std::size_t layer = 0; layer < keys_.size(); ++layer) {
    keys_[layer].select(0, to).copy_(keys_[layer].select(0, from));
    values_[layer].select(0, to).copy_(values_[layer].select(0, from));
  }
}

}  // namespace carnot
