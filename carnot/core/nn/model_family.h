// nn/model_family.h -- the table of model families: how each differs in the shared decoder, and transformers' defaults
// for keys missing from its config.json. No LibTorch.
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

  // Defaults for keys missing from config.json:
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
