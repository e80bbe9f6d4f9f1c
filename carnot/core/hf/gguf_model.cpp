#include "carnot/core/hf/gguf_model.h"

#include <algorithm>
#include <cmath>

#include "carnot/core/base/limits.h"
#include "carnot/core/hf/family_keys.h"
#include "carnot/core/hf/gguf_keys.h"
#include "carnot/core/hf/gguf_mixers.h"
#include "carnot/core/hf/gguf_rotary.h"

namespace carnot {
namespace {

constexpr const char* kArchitecture = "general.architecture";
constexpr const char* kWindow = "attention.sliding_window";
constexpr const char* kPattern = "attention.sliding_window_pattern";

/// A key that is a number of the shape.
struct SizeKey {
  std::string_view ending{};
  int ModelConfig::* member = nullptr;
  int (*otherwise)(const ModelConfig&) = nullptr;  ///< where the key is missing; null: it has to be there
};
constexpr SizeKey kSizes[] = {
    {"block_count", &ModelConfig::num_layers},
    {"embedding_length", &ModelConfig::hidden_size},
    {"feed_forward_length", &ModelConfig::intermediate_size},
    {"attention.head_count", &ModelConfig::num_heads},
    {"attention.head_count_kv", &ModelConfig::num_kv_heads, [](const ModelConfig& it) { return it.num_heads; }},
    {"attention.key_length", &ModelConfig::head_dim,
     [](const ModelConfig& it) { return it.hidden_size / std::max(it.num_heads, 1); }},
    {"context_length", &ModelConfig::max_positions},
};
constexpr SizeKey kExpertSizes[] = {
    {"expert_count", &ModelConfig::num_experts},
    {"expert_used_count", &ModelConfig::experts_per_token},
    {"expert_feed_forward_length", &ModelConfig::expert_size},  // of architectures that list it
};

/// A scale of architectures that list its key.
struct ScaleKey {
  std::string_view ending{};
  double ModelConfig::* member = nullptr;
  double otherwise = 1;
};
constexpr ScaleKey kScales[] = {
    {"attention.scale", &ModelConfig::attention_scale, 0},
    {"embedding_scale", &ModelConfig::embedding_scale},
    {"logit_scale", &ModelConfig::logits_divisor},
    {"residual_scale", &ModelConfig::residual_scale},
};

/// Further keys of any architecture that are read, or say nothing that changes what is computed.
constexpr std::string_view kOtherKeys[] = {"attention.causal",
                                           "attention.layer_norm_rms_epsilon",
                                           "attention.sliding_window",
                                           "attention.value_length",
                                           "expert_count",
                                           "expert_used_count",
                                           "rope.dimension_count",
                                           "rope.freq_base",
                                           "rope.scaling.attn_factor",
                                           "rope.scaling.factor",
                                           "rope.scaling.finetuned",
                                           "rope.scaling.original_context_length",
                                           "rope.scaling.type",
                                           "rope.scaling.yarn_attn_factor",
                                           "rope.scaling.yarn_beta_fast",
                                           "rope.scaling.yarn_beta_slow",
                                           "tensor_data_layout",
                                           "vocab_size"};

bool is_known_key(std::string_view ending, const GgufArchitecture& row) {
  return row.has(ending) || std::find(std::begin(kOtherKeys), std::end(kOtherKeys), ending) != std::end(kOtherKeys) ||
         std::any_of(std::begin(kSizes), std::end(kSizes), [&](const SizeKey& size) { return size.ending == ending; });
}

void refuse_unknown_keys(GgufKeyReader& read) {
  const std::string prefix = read.key("");
  for (const auto& [key, value] : read.metadata().file().values)
    if (key.starts_with(prefix) && !is_known_key(key.substr(prefix.size()), read.row()))
      read.metadata().problem(key, "is not known; what it asks for is not computed");
}

void read_experts(GgufKeyReader& read, ModelConfig& config) {
  if (!find_model_family(config.family)->experts)
    return read.only("expert_count", 0, ": mixtures of experts are not computed in " + std::string(read.row().name));
  for (const SizeKey& size : kExpertSizes) {
    if (!is_known_key(size.ending, read.row())) continue;
    read.require(size.ending);
    config.*size.member = read.count(size.ending, 0);
  }
  config.normalise_top_k = read.row().normalises_top_k;
}

/// A number of layers, of which the last has no window, or a flag for each layer.
void read_pattern(GgufKeyReader& read, ModelConfig& config) {
  const auto found = read.metadata().file().values.find(read.key(kPattern));
  if (found == read.metadata().file().values.end() || config.num_layers > kMaxModelLayers) return;
  std::vector<LayerKind> kinds = kinds_of(config);
  std::vector<bool> windowed;
  if (found->second.kind == GgufKind::Array) {
    windowed = read.metadata().flags(read.key(kPattern)).value_or(std::vector<bool>());
    if (windowed.size() != kinds.size())
      return read.problem(kPattern, "expected true or false for each of " + std::to_string(kinds.size()) + " layers");
  } else {
    const int every = read.count(kPattern, 0);
    for (std::size_t i = 0; i < kinds.size(); ++i)
      windowed.push_back(every == 0 || (static_cast<int>(i) + 1) % every != 0);
  }
  for (std::size_t i = 0; i < kinds.size(); ++i) kinds[i].windowed = windowed[i];
  set_layers(std::move(kinds), config);
}

void read_windows(GgufKeyReader& read, ModelConfig& config) {
  const int window = read.count(kWindow, 0);
  const bool closes = window > 0 && window < config.max_positions;
  switch (read.row().windows) {
    case GgufWindows::None:
      if (closes)
        read.problem(kWindow, "is " + std::to_string(window) + "; attention over a window is not computed in " +
                                  std::string(read.row().name));
      return;
    case GgufWindows::Every: config.window = closes ? window : 0; return;
    case GgufWindows::Turns:
      if (window == 0) return read.problem(kWindow, "expected an integer above 0");
      config.window = window;
      read_pattern(read, config);
  }
}

void read_shape(GgufKeyReader& read, ModelConfig& config) {
  for (const SizeKey& size : kSizes) {
    if (size.member == &ModelConfig::num_kv_heads && lists_key_heads(read.row())) continue;
    if (size.otherwise == nullptr) read.require(size.ending);
    config.*size.member = read.count(size.ending, size.otherwise == nullptr ? 0 : size.otherwise(config));
  }
  read_gguf_mixers(read, config);
  read.require("attention.layer_norm_rms_epsilon");
  config.rms_norm_epsilon = read.number("attention.layer_norm_rms_epsilon", 0);
  read.only("attention.value_length", config.head_dim, ", the size of keys");
  if (!read.metadata().flag(read.key("attention.causal")).value_or(true))
    read.problem("attention.causal", "expected true");
  read_experts(read, config);
  read_windows(read, config);
  if (read.row().attention_scale) config.attention_scale = read.row().attention_scale(config);
  for (const ScaleKey& scale : kScales)
    if (read.row().has(scale.ending)) config.*scale.member = read.number(scale.ending, scale.otherwise);
}

/// What tells layers apart, and the key of config.json that says so.
struct LayerProperty {
  bool LayerKind::* member = nullptr;
  const char* key = nullptr;
};
constexpr LayerProperty kLayerProperties[] = {{&LayerKind::rotated, "no_rope_layers"},
                                              {&LayerKind::windowed, "layer_types"},
                                              {&LayerKind::experts, "mlp_only_layers"}};

void write_layers(GgufKeyWriter& write, const ModelConfig& config) {
  const bool can_have_windows = write.row().windows != GgufWindows::None;
  if (can_have_windows) write.count(kWindow, config.window);
  if (!can_have_windows && config.window > 0)
    write.problem("sliding_window is " + std::to_string(config.window) + "; llama.cpp computes no windows in " +
                  std::string(write.row().name));
  ModelConfig usual = config;
  usual.layers.clear();
  const std::vector<LayerKind> kinds = kinds_of(config), usual_kinds = kinds_of(usual);
  std::vector<bool> full;
  for (const LayerKind& kind : kinds) full.push_back(!kind.windowed);
  const int turns = write.row().has(kPattern) ? turns_of(full) : -1;
  for (const LayerProperty& property : kLayerProperties) {
    const auto same = [&](const LayerKind& a, const LayerKind& b) { return a.*property.member == b.*property.member; };
    if (std::equal(kinds.begin(), kinds.end(), usual_kinds.begin(), same)) continue;
    const bool is_window = property.member == &LayerKind::windowed;
    if (is_window && turns >= 0)
      write.count(kPattern, turns);
    else if (!is_window || can_have_windows)
      write.problem(std::string(property.key) +
                    ": layers differ in another way than the usual one, the only one that " + "llama.cpp computes");
  }
}

void write_experts(GgufKeyWriter& write, const ModelConfig& config) {
  if (!find_model_family(config.family)->experts) return;
  for (const SizeKey& size : kExpertSizes)
    if (is_known_key(size.ending, write.row())) write.count(size.ending, config.*size.member);
  if (config.normalise_top_k != write.row().normalises_top_k)
    write.problem(std::string("norm_topk_prob is ") + (config.normalise_top_k ? "true" : "false") +
                  "; llama.cpp computes the other in " + std::string(write.row().name));
}

void write_scales(GgufKeyWriter& write, const ModelConfig& config) {
  for (const ScaleKey& scale : kScales) {
    const double value = config.*scale.member;
    if (!write.row().has(scale.ending) || value == scale.otherwise) continue;
    write.number(scale.ending, value);
    if (value <= 0) write.problem(std::string(scale.ending) + " is not above 0, which llama.cpp takes for 1");
  }
  if (write.row().has("logit_scale")) write.number("logit_scale", config.logits_divisor);
  if (write.row().has("attention.scale") || config.attention_scale == 0) return;
  const double computed = write.row().attention_scale ? write.row().attention_scale(config)
                                                      : 1 / std::sqrt(static_cast<double>(config.head_dim));
  if (std::abs(config.attention_scale - computed) > 1e-6 * computed)
    write.problem("query_pre_attn_scalar: scores are multiplied by " + std::to_string(config.attention_scale) +
                  ", expected " + std::to_string(computed) + ", the only scale that llama.cpp computes");
}

void check_demands(GgufKeyWriter& write, const ModelConfig& config) {
  const GgufArchitecture& row = write.row();
  const std::string demands = ", which llama.cpp does not load in " + std::string(row.name);
  if (row.own_head && config.tied_head) write.problem("tie_word_embeddings is true" + demands);
  if (row.full_width && config.num_heads * config.head_dim != config.hidden_size)
    write.problem("num_attention_heads times head_dim is not hidden_size" + demands);
  if (row.ungrouped && config.num_kv_heads != config.num_heads)
    write.problem("num_key_value_heads is not num_attention_heads" + demands);
}

/// Null, with problems, if the file cannot be read.
const GgufArchitecture* read_architecture(GgufMetadata& general) {
  general.require(kArchitecture);
  const std::string name = general.text(kArchitecture).value_or("");
  const bool has_window = general.integer(name + "." + kWindow).value_or(0) > 0;
  const GgufArchitecture* row = read_gguf_architecture(name, has_window);
  if (!general.any_problems() && row == nullptr)
    general.problem(kArchitecture, "expected " + gguf_architectures_read() + ", got '" + name + "'");
  if (general.integer("split.count").value_or(1) > 1)
    general.problem("split.count",
                    "the file is one part of several; expected a whole model "
                    "(llama-gguf-split --merge makes one of the parts)");
  return row;
}

}  // namespace

Result<ModelConfig> gguf_model_config(const GgufFile& file, const std::string& name) {
  GgufMetadata general(file, name);
  const GgufArchitecture* row = read_architecture(general);
  if (general.any_problems()) return general.error();
  GgufKeyReader read(file, name, *row);
  ModelConfig config{.family = std::string(row->family)};
  refuse_unknown_keys(read);
  read_shape(read, config);
  if (!read.metadata().any_problems()) read_gguf_rotary(read, config);
  if (const GgufTensor* embedding = find_gguf_tensor(file, "token_embd.weight");
      embedding != nullptr && embedding->shape.size() == 2 && embedding->shape[0] <= kMaxModelSize)
    config.vocab_size = static_cast<int>(embedding->shape[0]);
  config.tied_head = find_gguf_tensor(file, "output.weight") == nullptr;
  if (read.metadata().any_problems()) return read.metadata().error();
  if (const Status status = check_model_config(config); !status) return Error{name + ":\n" + status.error().message};
  return config;
}

void add_model(const ModelConfig& config, const std::string& name, GgufSettings& settings,
               std::vector<std::string>& problems) {
  const GgufArchitecture* row = find_gguf_architecture(config.family);
  if (row == nullptr)
    return problems.push_back(name + ": config.json: model_type is \"" + config.family + "\", expected " +
                              gguf_families_written() + ", the only ones that are written as GGUF");
  settings[kArchitecture] = std::string(row->name);
  GgufKeyWriter write(*row, name, settings, problems);
  for (const SizeKey& size : kSizes) write.count(size.ending, config.*size.member);
  if (config.rope_scaling.kind == "longrope") write.count("context_length", config.rope_scaling.long_max_positions);
  write.count("attention.value_length", config.head_dim);
  write.number("attention.layer_norm_rms_epsilon", config.rms_norm_epsilon);
  write.count("vocab_size", config.vocab_size);
  write_gguf_mixers(write, config);
  check_demands(write, config);
  write_experts(write, config);
  write_layers(write, config);
  write_scales(write, config);
  write_gguf_rotary(write, config);
}

}  // namespace carnot
