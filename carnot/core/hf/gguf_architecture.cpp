#include "carnot/core/hf/gguf_architecture.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace carnot {
namespace {

/// The largest Gemma 3, of 62 layers, divides its width by its heads; they have another size.
double gemma3_scale(const ModelConfig& config) {
  const int size = config.num_layers == 62 ? config.hidden_size / std::max(config.num_heads, 1) : config.head_dim;
  return 1 / std::sqrt(static_cast<double>(std::max(size, 1)));
}

constexpr std::string_view kExpertKeys[] = {"expert_feed_forward_length"};
constexpr std::string_view kTurnKeys[] = {"attention.sliding_window_pattern", "rope.freq_base_swa"};
constexpr std::string_view kScaleKeys[] = {"attention.scale", "embedding_scale", "logit_scale", "residual_scale"};
constexpr std::string_view kGrowthKeys[] = {"attention.temperature_scale", "rope.scaling.yarn_log_multiplier"};
constexpr std::string_view kConvolutionKeys[] = {"shortconv.l_cache"};
constexpr std::string_view kDeltaKeys[] = {"full_attention_interval", "nextn_predict_layers", "rope.dimension_sections",
                                           "ssm.conv_kernel",         "ssm.group_count",      "ssm.inner_size",
                                           "ssm.state_size",          "ssm.time_step_rank"};

constexpr GgufArchitecture kArchitectures[] = {
    {.family = "llama", .name = "llama", .interleaved = true, .frequency_factors = true},
    {.family = "mistral", .name = "llama", .interleaved = true, .frequency_factors = true},
    {.family = "qwen2", .name = "qwen2"},
    {.family = "qwen3", .name = "qwen3"},
    {.family = "smollm3", .name = "smollm3", .interleaved = true},
    {.family = "gemma3_text",
     .name = "gemma3",
     .windows = GgufWindows::Turns,
     .window_rope_theta = 10000,
     .attention_scale = gemma3_scale,
     .keys = kTurnKeys},
    {.family = "granite", .name = "granite", .interleaved = true, .frequency_factors = true, .keys = kScaleKeys},
    {.family = "qwen3_moe", .name = "qwen3moe", .normalises_top_k = true, .keys = kExpertKeys},
    {.family = "olmoe", .name = "olmoe", .own_head = true, .full_width = true, .ungrouped = true},
    {.family = "olmo2", .name = "olmo2", .own_head = true, .full_width = true},
    {.family = "olmo3",
     .name = "olmo2",
     .windows = GgufWindows::Turns,
     .own_head = true,
     .full_width = true,
     .keys = kTurnKeys},
    {.family = "phi3", .name = "phi3", .windows = GgufWindows::Every, .full_width = true},
    {.family = "lfm2", .name = "lfm2", .final_norm = "token_embd_norm", .full_width = true, .keys = kConvolutionKeys},
    {.family = "qwen3_5_text", .name = "qwen35", .norm_before_mlp = "post_attention_norm", .keys = kDeltaKeys},
    {.family = "ministral3", .name = "mistral3", .interleaved = true, .frequency_factors = true, .keys = kGrowthKeys},
};

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return text;
}

}  // namespace

bool GgufArchitecture::has(std::string_view key) const {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

const GgufArchitecture* find_gguf_architecture(std::string_view family) {
  for (const GgufArchitecture& row : kArchitectures)
    if (row.family == family) return &row;
  return nullptr;
}

const GgufArchitecture* read_gguf_architecture(std::string_view name, bool has_window) {
  const GgufArchitecture* found = nullptr;
  for (const GgufArchitecture& row : kArchitectures) {
    if (row.name != name) continue;
    if ((row.windows != GgufWindows::None) == has_window) return &row;
    if (found == nullptr) found = &row;
  }
  return found;
}

std::string gguf_architectures_read() {
  std::vector<std::string> names;
  for (const GgufArchitecture& row : kArchitectures)
    if (names.empty() || names.back() != row.name) names.emplace_back(row.name);
  return listed(names);
}

std::string gguf_families_written() {
  std::vector<std::string> families;
  for (const GgufArchitecture& row : kArchitectures) families.push_back('"' + std::string(row.family) + '"');
  return listed(families);
}

}  // namespace carnot
