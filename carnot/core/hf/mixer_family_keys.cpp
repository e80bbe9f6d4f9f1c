#include "carnot/core/hf/mixer_family_keys.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "carnot/core/base/limits.h"
#include "carnot/core/hf/family_keys.h"

namespace carnot {
namespace {

constexpr const char* kConvolution = "conv";
constexpr const char* kDelta = "linear_attention";

bool has_attention(const OrderedJson& layers, std::size_t layer) {
  return std::find(layers.begin(), layers.end(), OrderedJson(layer)) != layers.end();
}

/// "layer_types"; `name` is what it calls layers with the other mixer.
void read_mixers(JsonObjectReader& reader, const std::string& name, Mixer other, std::vector<LayerKind>& kinds) {
  read_list(reader, "layer_types", static_cast<int>(kinds.size()), "\"full_attention\" or \"" + name + '"',
            [&](int layer, const OrderedJson& type) {
              kinds[static_cast<std::size_t>(layer)].mixer = type == name ? other : Mixer::Attention;
              return type == kFull || type == name;
            });
}

void write_mixers(const ModelConfig& config, const std::string& name, OrderedJson& json) {
  OrderedJson types = OrderedJson::array();
  for (const LayerKind& kind : kinds_of(config)) types.push_back(kind.mixer == Mixer::Attention ? kFull : name);
  json["layer_types"] = types;
}

/// transformers adjusts the width of the MLP unless it is told not to.
int lfm2_width(JsonObjectReader& reader, int width) {
  bool adjusted = true;
  int multiple = 256;
  double factor = 1;
  reader.integer("block_ff_dim", width, false);
  reader.boolean("block_auto_adjust_ff_dim", adjusted);
  reader.integer("block_multiple_of", multiple, false);
  reader.number("block_ffn_dim_multiplier", factor);
  if (!adjusted) return width;
  const double scaled = std::floor(factor * (std::int64_t{2} * width / 3));
  if (multiple < 1 || scaled < 0 || scaled > kMaxModelSize) {
    reader.problem("block_multiple_of", "an integer of at least 1, and a width up to " + std::to_string(kMaxModelSize));
    return width;
  }
  return (static_cast<int>(scaled) + multiple - 1) / multiple * multiple;
}

}  // namespace

void read_lfm2(JsonObjectReader& reader, const ModelFamily& family, ModelConfig& config) {
  config.rms_norm_epsilon = family.rms_norm_epsilon;
  reader.number("norm_eps", config.rms_norm_epsilon);
  reader.boolean("tie_embedding", config.tied_head);
  reader.integer("conv_L_cache", config.convolution_width, false);
  reader.only("conv_bias", false);
  config.intermediate_size = lfm2_width(reader, config.intermediate_size);
  const OrderedJson* attention = reader.find("full_attn_idxs");
  if (attention && !attention->is_array()) return reader.problem("full_attn_idxs", "a list of layers");
  std::vector<LayerKind> kinds(static_cast<std::size_t>(std::max(config.num_layers, 0)));
  for (std::size_t i = 0; attention && i < kinds.size(); ++i)
    kinds[i].mixer = has_attention(*attention, i) ? Mixer::Attention : Mixer::ShortConvolution;
  read_mixers(reader, kConvolution, Mixer::ShortConvolution, kinds);
  set_layers(std::move(kinds), config);
}

void write_lfm2(const ModelConfig& config, OrderedJson& json) {
  json.erase("rms_norm_eps");
  json["norm_eps"] = config.rms_norm_epsilon;
  json["conv_L_cache"] = config.convolution_width;
  json["conv_bias"] = false;
  json["block_ff_dim"] = config.intermediate_size;
  json["block_auto_adjust_ff_dim"] = false;
  write_mixers(config, kConvolution, json);
}

void read_qwen3_5(JsonObjectReader& reader, const ModelFamily& family, ModelConfig& config) {
  config.convolution_width = 4;
  config.delta_key_heads = 16;
  config.delta_value_heads = 32;
  config.delta_key_dim = config.delta_value_dim = 128;
  reader.integer("linear_conv_kernel_dim", config.convolution_width, false);
  reader.integer("linear_num_key_heads", config.delta_key_heads, false);
  reader.integer("linear_num_value_heads", config.delta_value_heads, false);
  reader.integer("linear_key_head_dim", config.delta_key_dim, false);
  reader.integer("linear_value_head_dim", config.delta_value_dim, false);
  reader.only("attn_output_gate", true);
  int every = family.attention_every;
  reader.integer("full_attention_interval", every, false);
  if (every < 1) return reader.problem("full_attention_interval", "an integer of at least 1");
  std::vector<LayerKind> kinds(static_cast<std::size_t>(std::max(config.num_layers, 0)));
  for (std::size_t i = 0; i < kinds.size(); ++i)
    kinds[i].mixer = (static_cast<int>(i) + 1) % every == 0 ? Mixer::Attention : Mixer::GatedDelta;
  read_mixers(reader, kDelta, Mixer::GatedDelta, kinds);
  set_layers(std::move(kinds), config);
}

void write_qwen3_5(const ModelConfig& config, OrderedJson& json) {
  json["attn_output_gate"] = true;
  json["linear_conv_kernel_dim"] = config.convolution_width;
  json["linear_num_key_heads"] = config.delta_key_heads;
  json["linear_num_value_heads"] = config.delta_value_heads;
  json["linear_key_head_dim"] = config.delta_key_dim;
  json["linear_value_head_dim"] = config.delta_value_dim;
  write_mixers(config, kDelta, json);
  OrderedJson rotary = json["rope_scaling"].is_object() ? json["rope_scaling"] : OrderedJson{{"rope_type", "default"}};
  rotary["rope_theta"] = config.rope_theta;
  rotary["partial_rotary_factor"] = config.rotary_share;
  json["rope_parameters"] = rotary;
  json.erase("rope_scaling");
}

}  // namespace carnot
