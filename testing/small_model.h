// testing/small_model.h -- a model of two layers with random weights for the small tokenizer. Needs LibTorch.
#pragma once

#include "carnot/core/nn/model.h"
#include "testing/small_tokenizer.h"

namespace carnot::testing {

inline Model small_model(int max_positions) {
  return Model(ModelConfig{.vocab_size = small_tokenizer().vocab_size() + 5,
                           .hidden_size = 32,
                           .intermediate_size = 48,
                           .num_layers = 2,
                           .num_heads = 4,
                           .num_kv_heads = 2,
                           .head_dim = 8,
                           .max_positions = max_positions},
               3, at::TensorOptions().dtype(at::kFloat), 0.4);
}

}  // namespace carnot::testing
