#include "carnot/core/nn/model_family.h"

namespace carnot {
namespace {

constexpr NameInFiles kLfm2Names[] = {
    {"self_attn.o_proj", "self_attn.out_proj"},    {"self_attn.q_norm", "self_attn.q_layernorm"},
    {"self_attn.k_norm", "self_attn.k_layernorm"}, {"conv.o_proj", "conv.out_proj"},
    {"mlp.gate_proj", "feed_forward.w1"},          {"mlp.up_proj", "feed_forward.w3"},
    {"mlp.down_proj", "feed_forward.w2"},          {"input_layernorm", "operator_norm"},
    {"post_attention_layernorm", "ffn_norm"},      {"model.norm", "model.embedding_norm"}};

/// Llama 2 and 3.x; Mistral; Qwen2 and Qwen2.5; Qwen3: defaults as in transformers 4.57. SmolLM3; OLMo 2 and 3; Granite
/// 3; the text parts of Gemma 3 and Ministral 3; Phi-3 to Phi-4-mini; Qwen3's mixtures of experts and OLMoE; LFM2: as
/// in transformers 5.23.
constexpr ModelFamily kModelFamilies[] = {
    {.name = "llama", .architecture = "LlamaForCausalLM", .max_positions = 2048, .bos_token = 1, .eos_token = 2},
    {.name = "mistral",
     .architecture = "MistralForCausalLM",
     .windows = true,
     .kv_heads = 8,
     .sliding_window = 4096,
     .max_positions = 131072,
     .bos_token = 1,
     .eos_token = 2},
    {.name = "qwen2",
     .architecture = "Qwen2ForCausalLM",
     .query_key_value_bias = true,
     .windows = true,
     .kv_heads = 32},
    {.name = "qwen3",
     .architecture = "Qwen3ForCausalLM",
     .query_key_norm = QueryKeyNorm::Head,
     .windows = true,
     .kv_heads = 32,
     .head_dim = 128},
    {.name = "smollm3",
     .architecture = "SmolLM3ForCausalLM",
     .unrotated_every = 4,
     .kv_heads = 4,
     .rope_theta = 2000000,
     .tied_head = true,
     .bos_token = 128000,
     .eos_token = 128001,
     .pad_token = 128004},
    {.name = "olmo2",
     .architecture = "Olmo2ForCausalLM",
     .query_key_norm = QueryKeyNorm::Whole,
     .norms = NormPlacement::After,
     .rms_norm_epsilon = 1e-5,
     .max_positions = 2048,
     .eos_token = 50279,
     .pad_token = 1},
    {.name = "olmo3",
     .architecture = "Olmo3ForCausalLM",
     .query_key_norm = QueryKeyNorm::Whole,
     .norms = NormPlacement::After,
     .full_every = 4,
     .windows = true,
     .sliding_window = 4096,
     .rope_theta = 500000,
     .window_rope_theta = 500000,
     .rms_norm_epsilon = 1e-5,
     .max_positions = 2048,
     .eos_token = 50279,
     .pad_token = 1},
    {.name = "granite", .architecture = "GraniteForCausalLM", .max_positions = 2048, .bos_token = 1, .eos_token = 2},
    {.name = "gemma3_text",
     .architecture = "Gemma3ForCausalLM",
     .query_key_norm = QueryKeyNorm::Head,
     .norms = NormPlacement::Both,
     .activation = Activation::GeluTanh,
     .norms_add_one = true,
     .scales_by_root_width = true,
     .full_every = 6,
     .windows = true,
     .vocab_size = 262208,
     .heads = 8,
     .kv_heads = 4,
     .head_dim = 256,
     .sliding_window = 4096,
     .rope_theta = 1000000,
     .window_rope_theta = 10000,
     .tied_head = true,
     .max_positions = 131072,
     .bos_token = 2,
     .eos_token = 1,
     .pad_token = 0},
    {.name = "ministral3",
     .architecture = "Ministral3ForCausalLM",
     .windows = true,
     .kv_heads = 8,
     .head_dim = 128,
     .rms_norm_epsilon = 1e-5,
     .max_positions = 262144,
     .bos_token = 1,
     .eos_token = 2,
     .pad_token = 11},
    {.name = "phi3",
     .architecture = "Phi3ForCausalLM",
     .partial_rotary = true,
     .longrope = true,
     .fused_projections = true,
     .windows = true,
     .rms_norm_epsilon = 1e-5,
     .max_positions = 4096,
     .bos_token = 1,
     .eos_token = 32000,
     .pad_token = 32000},
    {.name = "qwen3_moe",
     .architecture = "Qwen3MoeForCausalLM",
     .query_key_norm = QueryKeyNorm::Head,
     .windows = true,
     .experts = true,
     .kv_heads = 4},
    {.name = "olmoe",
     .architecture = "OlmoeForCausalLM",
     .query_key_norm = QueryKeyNorm::Whole,
     .experts = true,
     .rms_norm_epsilon = 1e-5,
     .max_positions = 4096,
     .eos_token = 50279,
     .pad_token = 1},
    {.name = "lfm2",
     .architecture = "Lfm2ForCausalLM",
     .query_key_norm = QueryKeyNorm::Head,
     .attention_every = 3,
     .kv_heads = 8,
     .rope_theta = 1000000,
     .rms_norm_epsilon = 1e-5,
     .tied_head = true,
     .max_positions = 128000,
     .bos_token = 1,
     .eos_token = 2,
     .pad_token = 0,
     .names_in_files = kLfm2Names},
};

}  // namespace

std::span<const ModelFamily> model_families() { return kModelFamilies; }

const ModelFamily* find_model_family(std::string_view name) {
  for (const ModelFamily& family : kModelFamilies)
    if (family.name == name) return &family;
  return nullptr;
}

std::vector<std::string> model_family_names() {
  std::vector<std::string> names;
  for (const ModelFamily& family : kModelFamilies) names.emplace_back(family.name);
  return names;
}

}  // namespace carnot
