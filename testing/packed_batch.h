// testing/packed_batch.h -- a small decoder's shape, sequences of random tokens for it, and a loss. Header only,
// because this library does not link LibTorch.
#pragma once

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cstdint>
#include <string>
#include <vector>

#include "carnot/core/base/random.h"
#include "carnot/core/cache/block_manager.h"
#include "carnot/core/nn/token_statistics.h"

namespace carnot::testing {

/// A few experts, if the family has them; in every other layer, if it can say so.
inline void add_experts(ModelConfig& config) {
  if (!find_model_family(config.family)->experts) return;
  config.num_experts = 5;
  config.experts_per_token = 2;
  config.expert_size = config.intermediate_size / 2;
  if (config.family != "qwen3_moe") return;
  config.normalise_top_k = true;
  for (int i = 0; i < config.num_layers; ++i)
    config.layers.push_back({.windowed = config.window > 0, .experts = i % 2 == 0});
}

/// With every kind of layer that the family has, windows, and the scales that its config can set.
inline ModelConfig small_decoder(const std::string& family, int layers = 2, int head_dim = 12) {
  const ModelFamily& row = *find_model_family(family);
  ModelConfig config{.family = family,
                     .vocab_size = 83,
                     .hidden_size = 48,
                     .intermediate_size = 80,
                     .num_layers = layers,
                     .num_heads = 6,
                     .num_kv_heads = 2,
                     .head_dim = head_dim,
                     .tied_head = family == "qwen2"};
  for (int i = 0; i < layers && (row.unrotated_every > 0 || row.full_every > 0 || row.attention_every > 0); ++i)
    config.layers.push_back({.rotated = row.unrotated_every == 0 || i % 2 == 0,
                             .windowed = row.full_every > 0 && i % 2 == 0,
                             .mixer = row.attention_every > 0 && i % 2 == 0 ? row.other_mixer : Mixer::Attention});
  if (row.windows) config.window = 19;
  config.window_rope_theta = row.window_rope_theta;
  if (family == "ministral3") config.rope_scaling = {.original_max_positions = 8, .query_growth = 0.3};
  if (row.partial_rotary) config.rotary_share = 0.5;
  if (row.longrope) {
    std::vector<double> factors;
    for (int pair = 0; pair < config.rotary_dim() / 2; ++pair) factors.push_back(1 + 0.4 * pair * pair);
    config.rope_scaling = {.kind = "longrope",
                           .original_max_positions = 64,
                           .attention_factor = 1.1,
                           .short_factors = factors,
                           .long_factors = factors,
                           .long_max_positions = config.max_positions};
  }
  add_experts(config);
  if (row.other_mixer == Mixer::GatedDelta) {
    config.convolution_width = 4;
    config.delta_key_heads = 2;
    config.delta_value_heads = 4;
    config.delta_key_dim = 6;
    config.delta_value_dim = 10;
  }
  if (family == "granite") {
    config.attention_scale = 0.2;
    config.embedding_scale = 3;
    config.residual_scale = 0.7;
    config.logits_divisor = 1.5;
  }
  return config;
}

/// Sequences of random tokens, packed, with random targets.
struct PackedBatch {
  explicit PackedBatch(const std::vector<int>& lengths, std::uint64_t seed = 3) {
    RandomStream stream(seed);
    std::vector<std::int64_t> tokens, targets, positions;
    for (int length : lengths) {
      for (int p = 0; p < length; ++p) {
        tokens.push_back(static_cast<std::int64_t>(stream.below(83)));
        targets.push_back(static_cast<std::int64_t>(stream.below(83)));
        positions.push_back(p);
      }
      plan.offsets.push_back(static_cast<int>(tokens.size()));
    }
    tokens_T = at::tensor(tokens, at::kLong);
    targets_T = at::tensor(targets, at::kLong);
    positions_T = at::tensor(positions, at::kLong);
  }

  at::Tensor hidden(const Model& model) const { return model.hidden(tokens_T, positions_T, plan); }

  at::Tensor tokens_T, targets_T, positions_T;
  PackedAttention plan;
};

inline at::Tensor loss_of(const Model& model, const PackedBatch& batch, double temperature = 0.7) {
  const auto statistics =
      token_statistics(batch.hidden(model), model.head(), batch.targets_T,
                       {.temperature = temperature, .entropy_clamp = 0.3, .kernels = model.kernels()});
  return (statistics.entropy_T * 0.3 - statistics.logprob_T + statistics.logsumexp_T * 0.1 +
          statistics.clamped_entropy_T * 0.2)
      .sum();
}

/// The gradients of the trained parameters, in the order of Model::trained().
inline std::vector<at::Tensor> gradients_of(Model& model, const PackedBatch& batch) {
  model.requires_grad(true);
  loss_of(model, batch).backward();
  std::vector<at::Tensor> gradients;
  for (const NamedTensor& trained : model.trained()) {
    gradients.push_back(trained.tensor.grad().clone());
    trained.tensor.mutable_grad().reset();
  }
  return gradients;
}

inline double relative_error(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).abs().max() / b.abs().max().clamp_min(1e-30)).item<double>();
}

/// Of a cache: for about three sequences; 0 where no layer has a window.
inline int few_window_blocks(const Model& model) {
  return model.config().has_windows() ? static_cast<int>(3 * window_blocks_of_one(model.config().window)) : 0;
}

}  // namespace carnot::testing
