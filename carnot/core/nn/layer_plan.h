// nn/layer_plan.h -- what each layer of a decoder computes, as plain data: the family's row and the config, resolved.
// model.cpp and self_attention.cpp interpret it; nothing else asks for the family. No LibTorch.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "carnot/core/nn/model_config.h"

namespace carnot {

/// Hugging Face's names of a layer's norms; empty: the layer has no norm there.
struct NormNames {
  std::string_view before_attention{}, after_attention{}, before_mlp{}, after_mlp{};

  int count() const;
};

/// The angles of rotary positions.
struct RotarySettings {
  int dim = 0;  ///< leading numbers of a head that are rotated
  double theta = 10000;
  RotaryScaling scaling{};
};

struct LayerPlan {
  int index = 0;
  Mixer mixer = Mixer::Attention;
  int taps = 0;  ///< width of the mixer's convolution; 0: it has none
  // Attention:
  int window = 0;          ///< positions that a row sees, its own included; 0: all up to its own
  int unrotated = 0;       ///< last numbers of a head that are not rotated
  std::size_t rotary = 0;  ///< of ModelPlan::rotary
  QueryKeyNorm query_key_norm = QueryKeyNorm::None;
  double attention_scale = 1;  ///< multiplies scores
  bool gated = false;          ///< what it returns is multiplied by the sigmoid of a gate
  // MLP:
  Activation activation = Activation::Silu;
  int experts = 0;  ///< 0: one MLP for every row
  int top_k = 0;    ///< experts of a row: those with the highest probabilities, of equal ones the lowest indices
  bool normalise_top_k = false;  ///< their probabilities are divided by their sum
  int mlp_width = 0;             ///< of the MLP, or of one expert
  // Both:
  NormNames norms{};
  double residual_scale = 1;  ///< multiplies what is added to the residual stream
};

struct ModelPlan {
  double embedding_scale = 1;  ///< multiplies embeddings; rounded to the weights' type first
  double norm_offset = 0;      ///< added to the weights of every norm
  double hidden_scale = 1;     ///< multiplies the hidden states after the final norm
  std::vector<RotarySettings> rotary{};
  std::vector<LayerPlan> layers{};
};

/// REQUIRES: check_model_config(config).
ModelPlan model_plan(const ModelConfig& config);

/// What the names of a mixer's weights begin with.
std::string_view mixer_name(Mixer mixer);

/// The norms of each layer of a family.
const NormNames& norm_names(NormPlacement placement);

}  // namespace carnot
