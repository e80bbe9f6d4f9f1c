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
    const bool convolution = config.layer_kind(layer).convolution;
    keys_.push_back(convolution ? at::Tensor()
                                : zeros({num_blocks, config.num_kv_heads, config.head_dim, kBlockTokens}));
    values_.push_back(convolution ? zeros({num_blocks, 1, kBlockTokens, config.hidden_size})
                                  : zeros({num_blocks, config.num_kv_heads, kBlockTokens, config.head_dim}));
  }
}

template <class Use>
void KvCache::for_each(const Use& use) const {
  for (const auto* tensors : {&keys_, &values_})
    for (const at::Tensor& tensor : *tensors)
      if (tensor.defined()) use(tensor);
}

bool KvCache::is_large_on_cpu() const { return values_[0].device().is_cpu() && is_given_back(bytes()); }

void KvCache::take_memory() {
  if (!std::exchange(taken_, true) && is_large_on_cpu()) return_freed_memory();
}

void KvCache::give_back_memory() {
  taken_ = false;
  if (!is_large_on_cpu()) return;
  for_each([](const at::Tensor& tensor) { carnot::give_back_memory(tensor); });
}

std::int64_t KvCache::bytes() const {
  std::int64_t sum = 0;
  for_each([&](const at::Tensor& tensor) { sum += tensor.numel() * tensor.element_size(); });
  return sum;
}

void KvCache::copy_block(int from, int to) {
  for_each([&](const at::Tensor& tensor) { tensor.select(0, to).copy_(tensor.select(0, from)); });
}

}  // namespace carnot
