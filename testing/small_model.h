// testing/small_model.h -- a model of two layers, one of each kind that the family has, with random weights for the
// small tokenizer. Needs LibTorch.
#pragma once

#include <cstdint>
#include <string>

#include "carnot/core/nn/model.h"
#include "testing/small_tokenizer.h"

namespace carnot::testing {

struct SmallModelOptions {
  std::string family = "qwen2";
  int max_positions = 512;
  at::ScalarType type = at::kFloat;
  std::uint64_t seed = 3;
};

inline Model small_model(const SmallModelOptions& as = {}) {
  ModelConfig config{.family = as.family,
                     .vocab_size = small_tokenizer().vocab_size() + 5,
                     .hidden_size = 32,
                     .intermediate_size = 48,
                     .num_layers = 2,
                     .num_heads = 4,
                     .num_kv_heads = 2,
                     .head_dim = 8,
                     .max_positions = as.max_positions};
  const ModelFamily& family = *find_model_family(as.family);
  if (family.attention_every > 0) config.layers = {{.mixer = family.other_mixer}, {.mixer = Mixer::Attention}};
  if (family.windows) config.window = 19;
  if (family.full_every > 0) config.layers = {{.windowed = true}, {}};
  return Model(config, as.seed, at::TensorOptions().dtype(as.type), 0.4);
}

}  // namespace carnot::testing
