// bench/attention_layer.h -- one attention layer in bfloat16 with random rows and a cache, to be timed.
#pragma once

#include <span>
#include <vector>

#include "carnot/core/base/random.h"
#include "carnot/core/kernel/attention/attention.h"
#include "carnot/core/kernel/dispatch.h"

namespace carnot {

struct AttentionShape {
  const char* name;
  int heads, kv_heads, dim;
};
/// A layer, its rows, and the cache of some sequences that grow together.
class AttentionBench {
 public:
  static constexpr int kMostPositions = 4096;

  AttentionBench(const AttentionShape& shape, int sequences, int length, const kernel::BFloat16Kernels& products)
      : shape_(shape), sequences_(sequences), length_(length), products_(products) {
    RandomStream stream(7);
    const int half = shape.dim / 2;
    cosine_.resize(static_cast<std::size_t>(kMostPositions) * half);
    sine_.resize(cosine_.size());
    for (std::size_t i = 0; i < cosine_.size(); ++i) {
      cosine_[i] = static_cast<float>(stream.uniform());
      sine_[i] = static_cast<float>(stream.uniform());
    }
    layer_ = {.heads = shape.heads,
              .kv_heads = shape.kv_heads,
              .dim = shape.dim,
              .scale = 0.125F,
              .cosine = cosine_.data(),
              .sine = sine_.data()};
    const auto rows = static_cast<std::size_t>(sequences) * static_cast<std::size_t>(length);
    for (std::size_t i = 0; i < rows * static_cast<std::size_t>(layer_.width()); ++i)
      qkv_.push_back(kernel::rounded(static_cast<float>(stream.normal())));
    out_.resize(rows * static_cast<std::size_t>(shape.heads * shape.dim));
    const int blocks = (length + kernel::kTile - 1) / kernel::kTile * sequences;
    const auto block = static_cast<std::size_t>(shape.kv_heads * shape.dim * kernel::kTile);
    memory_.resize(2 * block * static_cast<std::size_t>(blocks));
    for (int b = 0; b < blocks; ++b) {
      keys_.push_back(memory_.data() + 2 * block * static_cast<std::size_t>(b));
      values_.push_back(keys_.back() + block);
    }
  }

  void prefill() { attend(length_, 0); }
  void decode() { attend(1, length_ - 1); }

 private:
  void attend(int rows, int past) {
    std::vector<std::int64_t> positions;
    std::vector<kernel::AttentionRows<kernel::BFloat16>> all;
    const std::size_t blocks = keys_.size() / static_cast<std::size_t>(sequences_);
    for (int s = 0; s < sequences_; ++s) {
      const std::size_t first = static_cast<std::size_t>(s) * blocks;
      all.push_back({.begin = static_cast<std::int64_t>(positions.size()),
                     .rows = rows,
                     .past = past,
                     .key_blocks = std::span(keys_).subspan(first, blocks),
                     .value_blocks = std::span(values_).subspan(first, blocks)});
      for (int r = 0; r < rows; ++r) positions.push_back(past + r);
    }
    kernel::attention_forward<kernel::BFloat16>(layer_, qkv_.data(), positions.data(), all, out_.data(), products_);
  }

  AttentionShape shape_;
  int sequences_, length_;
  const kernel::BFloat16Kernels& products_;
  kernel::AttentionLayer<float> layer_;
  std::vector<float> cosine_, sine_;
  std::vector<kernel::BFloat16> qkv_, out_, memory_;
  std::vector<kernel::BFloat16*> keys_, values_;
};

}  // namespace carnot
