// nn/model_config.h -- the shape of a decoder, in the terms of Hugging Face's config.json. No LibTorch.
//
// One decoder: grouped-query attention, short convolutions or the gated delta rule, rotary positions, RMSNorm, gated
// MLP or experts. nn/layer_plan.h resolves what a config and its family's row say to what each layer computes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/fields.h"
#include "carnot/core/base/result.h"
#include "carnot/core/nn/model_family.h"

namespace carnot {

/// How rotary positions are stretched beyond the pretraining length ("rope_scaling").
struct RotaryScaling {
  std::string kind = "default";  ///< default (no stretching), linear, llama3, yarn, longrope
  double factor = 1;
  int original_max_positions = 0;    ///< pretraining length; of all kinds but linear, and query_growth
  double low_frequency_factor = 1;   ///< llama3
  double high_frequency_factor = 4;  ///< llama3
  double attention_factor = 1;       ///< yarn, longrope: multiplies cosine and sine
  double beta_fast = 32;             ///< yarn: from this many rotations over the original length on, no stretching
  double beta_slow = 1;              ///< yarn: below this many rotations, full stretching
  bool truncate = true;              ///< yarn: the bounds of the ramp are rounded to whole dimensions
  /// Queries at position p are multiplied by 1 + query_growth log(1 + floor(p / original_max_positions)).
  double query_growth = 0;
  /// longrope: divisors of the frequencies, one each. transformers takes the long ones for sequences of more than
  /// original_max_positions, and so changes what it has computed of them. Here the short ones always apply, and where
  /// the long ones differ, ModelConfig::max_positions is at most original_max_positions.
  std::vector<double> short_factors{}, long_factors{};
  int long_max_positions = 0;  ///< longrope: of config.json, whatever ModelConfig::max_positions is

  /// Whether positions beyond ModelConfig::max_positions would be another model's.
  bool changes_beyond_max_positions() const { return short_factors != long_factors; }
};

/// How a layer differs from other layers.
struct LayerKind {
  bool rotated = true;    ///< has rotary positions
  bool windowed = false;  ///< sees ModelConfig::window positions
  bool experts = false;   ///< its MLP is a mixture of experts
  Mixer mixer = Mixer::Attention;
  bool operator==(const LayerKind&) const = default;
};

/// The widest short convolution.
inline constexpr int kMaxConvolutionTaps = 16;

struct ModelConfig {
  std::string family = "qwen2";  ///< Hugging Face's model_type; a name of nn/model_family.h
  int vocab_size = 0;
  int hidden_size = 128;
  int intermediate_size = 384;
  int num_layers = 4;
  int num_heads = 4;
  int num_kv_heads = 2;
  int head_dim = 32;
  double rope_theta = 10000;
  double rotary_share = 1;  ///< of a head, from its first number on, that rotary positions rotate
  RotaryScaling rope_scaling{};
  double rms_norm_epsilon = 1e-6;
  bool tied_head = true;
  int max_positions = 32768;
  int bos_token = -1;  ///< -1: none
  int pad_token = -1;
  std::vector<int> eos_tokens{};  ///< any of them ends a sequence

  std::vector<LayerKind> layers{};  ///< empty: as the family's layers take turns
  int window = 0;                   ///< positions that a windowed layer sees, its own included; 0: all
  double window_rope_theta = 0;     ///< of windowed layers, without rope_scaling; 0: as in the others
  double attention_scale = 0;       ///< multiplies scores; 0: 1 / sqrt(head_dim)
  double embedding_scale = 1;       ///< multiplies embeddings, beside what the family does
  double residual_scale = 1;        ///< multiplies what attention and MLP add to the residual stream
  double logits_divisor = 1;

  int num_experts = 0;  ///< of a layer that has experts
  int experts_per_token = 0;
  int expert_size = 0;           ///< width of one expert's gated MLP; 0: intermediate_size
  bool normalise_top_k = false;  ///< the probabilities of a token's experts are divided by their sum

  int convolution_width = 3;  ///< positions that a short convolution sums over, its own included

  int delta_key_heads = 2;  ///< of the gated delta rule
  int delta_value_heads = 2;
  int delta_key_dim = 32;
  int delta_value_dim = 32;

  /// The family's properties. REQUIRES: a known family.
  bool attention_bias() const { return find_model_family(family)->query_key_value_bias; }
  QueryKeyNorm query_key_norm() const { return find_model_family(family)->query_key_norm; }
  LayerKind layer_kind(int layer) const;
  /// Numbers that the query's projection gives.
  std::int64_t query_width() const {
    return std::int64_t{num_heads} * head_dim * (find_model_family(family)->gated_attention ? 2 : 1);
  }
  int rotary_dim() const { return static_cast<int>(head_dim * std::clamp(rotary_share, 0.0, 1.0)); }
  int expert_width() const { return expert_size > 0 ? expert_size : intermediate_size; }
  std::int64_t num_expert_layers() const;
  std::int64_t num_layers_with(Mixer mixer) const;
  std::int64_t num_windowed_layers() const;
  bool has_windows() const { return num_windowed_layers() > 0; }
  /// Whether a sequence has states besides what is kept of each position.
  bool has_states() const { return num_layers_with(Mixer::GatedDelta) > 0; }
  /// Numbers of a row that the gated delta rule reads: queries, keys, values.
  int delta_width() const { return 2 * delta_key_heads * delta_key_dim + delta_values(); }
  int delta_values() const { return delta_value_heads * delta_value_dim; }  ///< and those that it returns

  /// Saturates at the largest 64-bit number.
  std::int64_t num_parameters() const;

  /// The fields that a recipe can set for a random model (`model.*`).
  void fields(FieldVisitor& visit);
};

/// All problems of the shape, one sentence per line; ok if the model can be built.
Status check_model_config(const ModelConfig& config);

}  // namespace carnot
