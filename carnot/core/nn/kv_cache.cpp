#include "carnot/core/nn/kv_cache.h"

#include <ATen/Functions.h>

#include <utility>

#include "carnot/core/base/check.h"
#include "carnot/core/nn/cpu_memory.h"
#include "carnot/core/nn/gated_delta_net.h"

namespace carnot {

KvCache::KvCache(const ModelConfig& config, const CacheSize& size, const at::TensorOptions& options)
    : size_(size), on_cpu_(options.device().is_cpu()) {
  CARNOT_CHECK_GT(size.blocks, 0);
  if (!config.has_states()) size_.states = 0;
  if (config.has_states()) CARNOT_CHECK_GT(size.states, 0);
  if (!config.has_windows()) size_.window_blocks = 0;
  size_.window = size_.has_window() ? config.window : 0;
  for (int layer = 0; layer < config.num_layers; ++layer)
    add_layer(config, config.layer_kind(layer), options.requires_grad(false));
}

void KvCache::add_layer(const ModelConfig& config, const LayerKind& kind, const at::TensorOptions& options) {
  const auto zeros = [&](at::IntArrayRef shape, const at::TensorOptions& as) {
    return on_cpu_ ? untouched_zeros(shape, as) : at::zeros(shape, as);
  };
  in_window_.push_back(kind.windowed && size_.has_window());
  const int num_blocks = in_window_.back() ? size_.window_blocks : size_.blocks;
  at::Tensor keys, values, states, last_rows;
  switch (kind.mixer) {
    case Mixer::Attention:
      keys = zeros({num_blocks, config.num_kv_heads, config.head_dim, kBlockTokens}, options);
      values = zeros({num_blocks, config.num_kv_heads, kBlockTokens, config.head_dim}, options);
      break;
    case Mixer::ShortConvolution: values = zeros({num_blocks, 1, kBlockTokens, config.hidden_size}, options); break;
    case Mixer::GatedDelta:
      const bool in_double = options.dtype() == at::kDouble;
      states = zeros({size_.states, delta_state_size(config, in_double)},
                     options.dtype(in_double ? at::kDouble : at::kFloat));
      last_rows = zeros({size_.states, config.convolution_width - 1, config.delta_width()}, options);
  }
  keys_.push_back(keys);
  values_.push_back(values);
  states_.push_back(states);
  last_rows_.push_back(last_rows);
}

template <class Use>
void KvCache::for_each(const Use& use) const {
  for (const auto* tensors : {&keys_, &values_, &states_, &last_rows_})
    for (const at::Tensor& tensor : *tensors)
      if (tensor.defined()) use(tensor);
}

bool KvCache::is_large_on_cpu() const { return on_cpu_ && is_given_back(bytes()); }

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

void KvCache::copy_block(int from, int to) { copy_block(from, to, false); }

void KvCache::copy_window_block(int from, int to) { copy_block(from, to, true); }

void KvCache::copy_block(int from, int to, bool of_window) {
  for (const auto* tensors : {&keys_, &values_})
    for (std::size_t layer = 0; layer < tensors->size(); ++layer)
      if (const at::Tensor& tensor = (*tensors)[layer]; tensor.defined() && in_window_[layer] == of_window)
        tensor.select(0, to).copy_(tensor.select(0, from));
}

void KvCache::copy_state(int from, int to) {
  for (const auto* tensors : {&states_, &last_rows_})
    for (const at::Tensor& tensor : *tensors)
      if (tensor.defined()) tensor.select(0, to).copy_(tensor.select(0, from));
}

}  // namespace carnot
