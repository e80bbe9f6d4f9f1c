#include "carnot/core/hf/family_keys.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "carnot/core/base/limits.h"
#include "carnot/core/hf/mixer_family_keys.h"
#include "carnot/core/hf/rotary_family_keys.h"

namespace carnot {
namespace {

constexpr const char* kWindowed = "sliding_attention";

void read_layer_types(JsonObjectReader& reader, ModelConfig& config) {
  std::vector<LayerKind> kinds = kinds_of(config);
  const bool listed = read_list(reader, "layer_types", config.num_layers,
                                "\"full_attention\" or, with a sliding_window, \"sliding_attention\"",
                                [&](int layer, const OrderedJson& type) {
                                  kinds[static_cast<std::size_t>(layer)].windowed = type == kWindowed;
                                  return type == kFull || (type == kWindowed && config.window > 0);
                                });
  if (listed) set_layers(std::move(kinds), config);
}

/// A window that no layer has.
void forget_unused_window(ModelConfig& config) {
  const auto kinds = kinds_of(config);
  if (std::any_of(kinds.begin(), kinds.end(), [](const LayerKind& kind) { return kind.windowed; })) return;
  config.window = 0;
  config.window_rope_theta = 0;
  config.layers.clear();
}

double window_theta(const ModelConfig& config) {
  return config.window_rope_theta > 0 ? config.window_rope_theta : config.rope_theta;
}

void write_windows(const ModelConfig& config, OrderedJson& json) {
  json["sliding_window"] = config.window > 0 ? OrderedJson(config.window) : OrderedJson(nullptr);
  OrderedJson types = OrderedJson::array();
  for (const LayerKind& kind : kinds_of(config)) types.push_back(kind.windowed ? kWindowed : kFull);
  json["layer_types"] = types;
}

int read_window(JsonObjectReader& reader, int otherwise) {
  int window = reader.has("sliding_window") ? 0 : otherwise;
  reader.integer("sliding_window", window, false);
  return window;
}

/// Layers from max_window_layers on.
void read_qwen(JsonObjectReader& reader, const ModelFamily&, ModelConfig& config) {
  bool windows = false;
  reader.boolean("use_sliding_window", windows);
  const int window = windows ? read_window(reader, 4096) : 0;
  int first = 28;
  reader.integer("max_window_layers", first, false);
  config.window = window < config.max_positions ? window : 0;
  if (windows && config.window == 0) return;
  std::vector<LayerKind> kinds(static_cast<std::size_t>(std::max(config.num_layers, 0)));
  for (std::size_t i = 0; config.window > 0 && i < kinds.size(); ++i) kinds[i].windowed = static_cast<int>(i) >= first;
  set_layers(std::move(kinds), config);
  read_layer_types(reader, config);
  forget_unused_window(config);
}

void write_qwen(const ModelConfig& config, OrderedJson& json) {
  if (config.window == 0) return;
  json["use_sliding_window"] = true;
  write_windows(config, json);
}

/// "no_rope_layers" has 1 for layers with rotary positions.
void read_smollm3(JsonObjectReader& reader, const ModelFamily& family, ModelConfig& config) {
  reader.only("use_sliding_window", false);
  refuse_windowed_layers(reader);
  int every = family.unrotated_every;
  reader.integer("no_rope_layer_interval", every, false);
  if (every < 1) return reader.problem("no_rope_layer_interval", "an integer of at least 1");
  std::vector<LayerKind> kinds(static_cast<std::size_t>(std::max(config.num_layers, 0)));
  for (std::size_t i = 0; i < kinds.size(); ++i) kinds[i].rotated = (static_cast<int>(i) + 1) % every != 0;
  read_list(reader, "no_rope_layers", config.num_layers, "0 or 1", [&](int layer, const OrderedJson& rotated) {
    kinds[static_cast<std::size_t>(layer)].rotated = rotated == 1;
    return rotated == 0 || rotated == 1;
  });
  set_layers(std::move(kinds), config);
}

void write_smollm3(const ModelConfig& config, OrderedJson& json) {
  OrderedJson rotated = OrderedJson::array();
  for (const LayerKind& kind : kinds_of(config)) rotated.push_back(kind.rotated ? 1 : 0);
  json["no_rope_layers"] = rotated;
}

/// Windowed layers that rotate by angles of their own, which transformers 5 lists by the kind of layer.
void read_turns(JsonObjectReader& reader, const ModelFamily& family, ModelConfig& config) {
  config.window = read_window(reader, family.sliding_window);
  if (config.window == 0) reader.problem("sliding_window", "an integer above 0");
  const OrderedJson* rotary = reader.find("rope_parameters");
  if (rotary && rotary->is_object() && rotary->contains(kWindowed) && rotary->at(kWindowed).is_object()) {
    JsonObjectReader part(rotary->at(kWindowed), reader.where() + ": rope_parameters: " + kWindowed);
    part.number("rope_theta", config.window_rope_theta);
    part.only("rope_type", "default");
    reader.problems().insert(reader.problems().end(), part.problems().begin(), part.problems().end());
  }
  read_layer_types(reader, config);
  forget_unused_window(config);
}

/// transformers wants a window, although no layer may have one.
void write_turns(const ModelConfig& config, OrderedJson& json) {
  write_windows(config, json);
  if (config.window == 0) json["sliding_window"] = config.max_positions;
  OrderedJson full = json["rope_scaling"].is_object() ? json["rope_scaling"] : OrderedJson{{"rope_type", "default"}};
  full["rope_theta"] = config.rope_theta;
  json["rope_parameters"] = {{kFull, full},
                             {kWindowed, {{"rope_type", "default"}, {"rope_theta", window_theta(config)}}}};
}

void read_olmo3(JsonObjectReader& reader, const ModelFamily& family, ModelConfig& config) {
  config.window_rope_theta = config.rope_theta;
  read_turns(reader, family, config);
}

void read_gemma3(JsonObjectReader& reader, const ModelFamily& family, ModelConfig& config) {
  config.window_rope_theta = family.window_rope_theta;
  reader.number("rope_local_base_freq", config.window_rope_theta);
  double scalar = 256;
  reader.number("query_pre_attn_scalar", scalar);
  if (scalar > 0)
    config.attention_scale = 1 / std::sqrt(scalar);
  else
    reader.problem("query_pre_attn_scalar", "a number above 0");
  read_turns(reader, family, config);
  if (!reader.find("layer_types") && config.window > 0) {
    int every = family.full_every;
    reader.integer("sliding_window_pattern", every, false);
    if (every < 1) return reader.problem("sliding_window_pattern", "an integer of at least 1");
    std::vector<LayerKind> kinds = kinds_of(config);
    for (std::size_t i = 0; i < kinds.size(); ++i) kinds[i].windowed = (static_cast<int>(i) + 1) % every != 0;
    set_layers(std::move(kinds), config);
  }
  reader.only("use_bidirectional_attention", false);
  for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping"})
    reader.refuse(key, "soft caps are not computed");
}

void write_gemma3(const ModelConfig& config, OrderedJson& json) {
  write_turns(config, json);
  json["rope_local_base_freq"] = window_theta(config);
  const double scalar =
      config.attention_scale > 0 ? 1 / (config.attention_scale * config.attention_scale) : config.head_dim;
  const bool whole = std::abs(scalar - std::round(scalar)) < 1e-9 * scalar;  // transformers wants an integer
  json["query_pre_attn_scalar"] = whole ? OrderedJson(std::llround(scalar)) : OrderedJson(scalar);
}

void read_granite(JsonObjectReader& reader, const ModelFamily&, ModelConfig& config) {
  config.attention_scale = 1;
  reader.number("attention_multiplier", config.attention_scale);
  reader.number("embedding_multiplier", config.embedding_scale);
  reader.number("residual_multiplier", config.residual_scale);
  reader.number("logits_scaling", config.logits_divisor);
  if (config.attention_scale <= 0) reader.problem("attention_multiplier", "a number above 0");
  refuse_windowed_layers(reader);
}

void write_granite(const ModelConfig& config, OrderedJson& json) {
  json["attention_multiplier"] = config.attention_scale > 0 ? config.attention_scale : 1 / std::sqrt(config.head_dim);
  json["embedding_multiplier"] = config.embedding_scale;
  json["residual_multiplier"] = config.residual_scale;
  json["logits_scaling"] = config.logits_divisor;
}

/// What all mixtures of experts say of them. transformers 5 writes num_local_experts for Qwen3.
void read_experts(JsonObjectReader& reader, int experts, ModelConfig& config) {
  config.num_experts = experts;
  config.experts_per_token = 8;
  for (const char* key : {"num_local_experts", "num_experts"}) reader.integer(key, config.num_experts, false);
  reader.integer("num_experts_per_tok", config.experts_per_token, false);
  reader.boolean("norm_topk_prob", config.normalise_top_k);
}

void write_experts(const ModelConfig& config, OrderedJson& json) {
  json["num_experts"] = config.num_experts;
  json["num_experts_per_tok"] = config.experts_per_token;
  json["norm_topk_prob"] = config.normalise_top_k;
}

/// Layers have experts in turns, but for those that are listed. A window is every layer's.
void read_qwen3_moe(JsonObjectReader& reader, const ModelFamily&, ModelConfig& config) {
  read_experts(reader, 128, config);
  config.expert_size = 768;
  reader.integer("moe_intermediate_size", config.expert_size, false);
  bool windows = false;
  reader.boolean("use_sliding_window", windows);
  const int window = windows ? read_window(reader, 4096) : 0;
  config.window = window < config.max_positions ? window : 0;
  int step = 1;
  reader.integer("decoder_sparse_step", step, false);
  if (step < 1) return reader.problem("decoder_sparse_step", "an integer of at least 1");
  std::vector<LayerKind> kinds = kinds_of(config);
  for (std::size_t i = 0; i < kinds.size(); ++i) kinds[i].experts = (static_cast<int>(i) + 1) % step == 0;
  if (const OrderedJson* dense = reader.find("mlp_only_layers")) {
    const auto is_layer = [](const OrderedJson& layer) { return layer.is_number_integer() && layer >= 0; };
    if (!dense->is_array() || !std::all_of(dense->begin(), dense->end(), is_layer))
      return reader.problem("mlp_only_layers", "a list of layers");
    for (const OrderedJson& layer : *dense)
      if (layer < kinds.size()) kinds[layer.get<std::size_t>()].experts = false;
  }
  set_layers(std::move(kinds), config);
  if (config.window == 0) refuse_windowed_layers(reader);
}

void write_qwen3_moe(const ModelConfig& config, OrderedJson& json) {
  write_experts(config, json);
  json["moe_intermediate_size"] = config.expert_width();
  json["decoder_sparse_step"] = 1;
  OrderedJson dense = OrderedJson::array();
  const auto kinds = kinds_of(config);
  for (std::size_t i = 0; i < kinds.size(); ++i)
    if (!kinds[i].experts) dense.push_back(i);
  json["mlp_only_layers"] = dense;
  json["use_sliding_window"] = config.window > 0;
  json["sliding_window"] = config.window > 0 ? OrderedJson(config.window) : OrderedJson(nullptr);
}

/// intermediate_size is one expert's.
void read_olmoe(JsonObjectReader& reader, const ModelFamily&, ModelConfig& config) {
  read_experts(reader, 64, config);
  reader.refuse("clip_qkv", "queries, keys and values are not clipped");
  reader.only("use_sliding_window", false);
  refuse_windowed_layers(reader);
}

void write_olmoe(const ModelConfig& config, OrderedJson& json) {
  write_experts(config, json);
  json["intermediate_size"] = config.expert_width();
  json["clip_qkv"] = nullptr;
}

constexpr FamilyKeys kFamilyKeys[] = {{"mistral", read_mistral, write_mistral},
                                      {"qwen2", read_qwen, write_qwen},
                                      {"qwen3", read_qwen, write_qwen},
                                      {"smollm3", read_smollm3, write_smollm3},
                                      {"olmo3", read_olmo3, write_turns},
                                      {"granite", read_granite, write_granite},
                                      {"gemma3_text", read_gemma3, write_gemma3},
                                      {"ministral3", read_ministral3, write_ministral3},
                                      {"phi3", read_phi3, write_phi3},
                                      {"qwen3_moe", read_qwen3_moe, write_qwen3_moe},
                                      {"olmoe", read_olmoe, write_olmoe},
                                      {"lfm2", read_lfm2, write_lfm2},
                                      {"qwen3_5_text", read_qwen3_5, write_qwen3_5}};

}  // namespace

const FamilyKeys* find_family_keys(std::string_view family) {
  for (const FamilyKeys& keys : kFamilyKeys)
    if (keys.family == family) return &keys;
  return nullptr;
}

std::vector<LayerKind> kinds_of(const ModelConfig& config) {
  std::vector<LayerKind> kinds;
  for (int layer = 0; layer < config.num_layers; ++layer) kinds.push_back(config.layer_kind(layer));
  return kinds;
}

void set_layers(std::vector<LayerKind> kinds, ModelConfig& config) {
  config.layers.clear();
  if (kinds != kinds_of(config)) config.layers = std::move(kinds);
}

void read_mistral(JsonObjectReader& reader, const ModelFamily& family, ModelConfig& config) {
  const int window = read_window(reader, family.sliding_window);
  config.window = window < config.max_positions ? window : 0;
  refuse_windowed_layers(reader);
}

void write_mistral(const ModelConfig& config, OrderedJson& json) {
  json["sliding_window"] = config.window > 0 ? OrderedJson(config.window) : OrderedJson(nullptr);
}

void refuse_windowed_layers(JsonObjectReader& reader) {
  const OrderedJson* layers = reader.find("layer_types");
  if (!layers) return;
  const bool all_full = layers->is_array() && std::all_of(layers->begin(), layers->end(),
                                                          [](const OrderedJson& type) { return type == kFull; });
  if (!all_full) reader.problem("layer_types", "\"full_attention\" in every layer");
}

}  // namespace carnot
