// nn/model_config.h -- the shape of a decoder, in the words of Hugging Face's config.json. No LibTorch.
//
// A family is a set of switches over one decoder: grouped-query attention, rotary positions, RMSNorm, gated MLP.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "carnot/base/fields.h"
#include "carnot/base/result.h"

namespace carnot {

struct ModelConfig {
  std::string family = "qwen2";  ///< Hugging Face's model_type: "qwen2", "qwen3"
  int vocab_size = 0;
  int hidden_size = 128;
  int intermediate_size = 384;
  int num_layers = 4;
  int num_heads = 4;
  int num_kv_heads = 2;
  int head_dim = 32;
  double rope_theta = 10000;
  double rms_norm_epsilon = 1e-6;
  bool tied_head = true;
  int max_positions = 32768;
  int bos_token = -1;  ///< -1: none
  int eos_token = -1;

  /// What the family switches on.
  bool attention_bias() const { return family == "qwen2"; }
  bool query_key_norm() const { return family == "qwen3"; }

  std::int64_t num_parameters() const;

  /// The fields that a recipe may choose for a random model (`model.*`).
  void fields(FieldVisitor& visit);
};

/// Everything wrong with the shape, one sentence each line; ok where it can be built.
Status check_model_config(const ModelConfig& config);

/// Reads config.json. A key that asks for something we do not compute is refused by name, all of them at once.
Result<ModelConfig> parse_model_config(std::string_view json, const std::string& name);

/// A config.json that transformers loads; `dtype` as "float32", "bfloat16".
std::string model_config_json(const ModelConfig& config, const std::string& dtype);

}  // namespace carnot
