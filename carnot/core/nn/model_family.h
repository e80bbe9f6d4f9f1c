// nn/model_family.h -- what distinguishes model families: how the layers of each are put together, and transformers'
// defaults for keys missing from its config.json. The table is in model_family.cpp. No LibTorch.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace carnot {

/// Where a layer's RMSNorms are: on the input of attention and MLP, on what they add to the residual stream, or on
/// both.
enum class NormPlacement { Before, After, Both };

/// RMSNorm of queries and keys: of each head, or of all heads together.
enum class QueryKeyNorm { None, Head, Whole };

/// What mixes the positions of a layer: attention, LFM2's gated short convolution, or Qwen3.5's gated delta rule, whose
/// state stands for all positions before.
enum class Mixer { Attention, ShortConvolution, GatedDelta };

/// Of a gate: of the MLP's, or, Sigmoid alone, of what attention returns.
enum class Activation { Silu, GeluTanh, Sigmoid };

/// Where a family's files name a part of a weight differently than NamedTensor does.
struct NameInFiles {
  std::string_view ours{}, theirs{};
};

struct ModelFamily {
  std::string_view name{};          ///< Hugging Face's model_type
  std::string_view architecture{};  ///< the class that transformers loads
  bool query_key_value_bias = false;
  QueryKeyNorm query_key_norm = QueryKeyNorm::None;
  NormPlacement norms = NormPlacement::Before;
  Activation activation = Activation::Silu;
  bool norms_add_one = false;         ///< norms multiply by 1 + weight
  bool scales_by_root_width = false;  ///< embeddings are multiplied by sqrt(hidden_size)
  bool partial_rotary = false;        ///< config.json can leave the last numbers of a head unrotated
  bool longrope = false;              ///< positions are scaled by longrope or not at all, otherwise by other kinds
  bool fused_projections = false;     ///< files hold query, key and value as qkv_proj, gate and up as gate_up_proj
  bool gated_attention = false;       ///< the query's projection also gives a gate of what attention returns

  // Layers differ in turns, unless config.json lists them:
  int unrotated_every = 0;  ///< the last of so many layers has no rotary positions; 0: all have
  int full_every = 0;       ///< the last of so many layers sees all positions, the others a window; 0: see windows
  bool windows = false;     ///< layers see a window if config.json has one
  bool experts = false;     ///< the MLP is a mixture of experts, except in layers that config.json makes dense
  int attention_every = 0;  ///< the last of so many layers has attention, the others other_mixer; 0: all have
  Mixer other_mixer = Mixer::Attention;

  // Defaults for keys missing from config.json:
  int vocab_size = 0;      ///< 0: the key is required
  int heads = 0;           ///< the same
  int kv_heads = 0;        ///< 0: as many as attention heads
  int head_dim = 0;        ///< 0: hidden_size / attention heads
  int sliding_window = 0;  ///< 0: none
  double rope_theta = 10000;
  double rotary_share = 1;
  double window_rope_theta = 0;  ///< 0: windowed layers rotate as the others
  double rms_norm_epsilon = 1e-6;
  bool tied_head = false;
  int max_positions = 32768;
  int bos_token = -1;  ///< -1: none
  int eos_token = -1;
  int pad_token = -1;

  std::span<const NameInFiles> names_in_files{};
};

std::span<const ModelFamily> model_families();

/// Null if the name is not in the table.
const ModelFamily* find_model_family(std::string_view name);

std::vector<std::string> model_family_names();

}  // namespace carnot
