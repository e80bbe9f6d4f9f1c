// nn/model_family.h -- the model families, a row each: what sets one apart in the one decoder, and what transformers
// takes where its config.json lacks a key. No LibTorch.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace carnot {

struct ModelFamily {
  std::string_view name{};          ///< Hugging Face's model_type
  std::string_view architecture{};  ///< the class that transformers loads
  bool query_key_value_bias = false;
  bool query_key_norm = false;  ///< RMSNorm over each head's queries and keys

  // Where config.json lacks the key:
  int kv_heads = 0;        ///< 0: as many as attention heads
  int head_dim = 0;        ///< 0: hidden_size / attention heads
  int sliding_window = 0;  ///< 0: none
  int max_positions = 32768;
  int bos_token = -1;  ///< -1: none
  int eos_token = -1;
};

/// Llama 2 and 3.x; Mistral; Qwen2 and Qwen2.5; Qwen3. Defaults as in transformers 4.57.
inline constexpr ModelFamily kModelFamilies[] = {
    {.name = "llama", .architecture = "LlamaForCausalLM", .max_positions = 2048, .bos_token = 1, .eos_token = 2},
    {.name = "mistral",
     .architecture = "MistralForCausalLM",
     .kv_heads = 8,
     .sliding_window = 4096,
     .max_positions = 131072,
     .bos_token = 1,
     .eos_token = 2},
    {.name = "qwen2", .architecture = "Qwen2ForCausalLM", .query_key_value_bias = true, .kv_heads = 32},
    {.name = "qwen3", .architecture = "Qwen3ForCausalLM", .query_key_norm = true, .kv_heads = 32, .head_dim = 128},
};

/// Null if the name is not in the table.
const ModelFamily* find_model_family(std::string_view name);

std::vector<std::string> model_family_names();

}  // namespace carnot
