#include "carnot/core/hf/model_config_file.h"

#include <cmath>

#include "carnot/core/base/json.h"
#include "carnot/core/base/limits.h"
#include "carnot/core/hf/family_keys.h"
#include "carnot/core/hf/json_object_reader.h"
#include "carnot/core/nn/model_config.h"

namespace carnot {
namespace {

std::string quoted_list(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + ('"' + words[i] + '"');
  return text;
}

/// The factor of YaRN's equation 22, as transformers extends it for DeepSeek's mscale.
double yarn_attention_factor(double factor, double mscale, double mscale_all_dim) {
  const auto scale = [&](double weight) { return factor <= 1 ? 1.0 : 0.1 * weight * std::log(factor) + 1; };
  return mscale != 0 && mscale_all_dim != 0 ? scale(mscale) / scale(mscale_all_dim) : scale(1);
}

void read_yarn(JsonObjectReader& reader, int max_positions, RotaryScaling& scaling) {
  reader.number("beta_fast", scaling.beta_fast);
  reader.number("beta_slow", scaling.beta_slow);
  reader.boolean("truncate", scaling.truncate);
  scaling.original_max_positions = max_positions;
  reader.integer("original_max_position_embeddings", scaling.original_max_positions, false);
  double mscale = 0, mscale_all_dim = 0;
  reader.number("mscale", mscale);
  reader.number("mscale_all_dim", mscale_all_dim);
  scaling.attention_factor = yarn_attention_factor(scaling.factor, mscale, mscale_all_dim);
  reader.number("attention_factor", scaling.attention_factor);
}

void read_rotary_share(JsonObjectReader& reader, const ModelFamily& family, ModelConfig& config) {
  if (family.partial_rotary)
    reader.number("partial_rotary_factor", config.rotary_share);
  else
    reader.only("partial_rotary_factor", 1.0);
}

/// The kind alone; hf/family_keys.cpp reads the rest, which depends on other keys. Phi-3's first files call it "su",
/// and transformers reads "yarn" as the same.
void read_longrope_kind(JsonObjectReader& reader, const std::string& key, RotaryScaling& scaling) {
  const OrderedJson* kind = reader.find(key);
  if (kind && (*kind == "longrope" || *kind == "su" || *kind == "yarn")) {
    scaling.kind = "longrope";
  } else if (kind ? *kind != "default" : reader.find("short_factor") != nullptr) {
    reader.problem(key, "\"default\" or \"longrope\", the only kinds that this family has");
  }
}

/// One of the two objects that say how positions are scaled; the kind is "rope_type", "type" in older files.
void read_rotary_object(JsonObjectReader& reader, const ModelFamily& family, ModelConfig& config) {
  RotaryScaling& scaling = config.rope_scaling;
  reader.number("rope_theta", config.rope_theta);
  read_rotary_share(reader, family, config);
  const std::string key = reader.find("rope_type") ? "rope_type" : "type";
  const OrderedJson* kind = reader.find(key);
  if (family.longrope) return read_longrope_kind(reader, key, scaling);
  const bool known = kind && (*kind == "default" || *kind == "linear" || *kind == "llama3" || *kind == "yarn");
  if (!known && (kind || reader.find("factor")))
    return reader.problem(key, "\"default\", \"linear\", \"llama3\" or \"yarn\", the only kinds that are computed");
  if (!known || *kind == "default") return;
  scaling.kind = kind->get<std::string>();
  reader.number("factor", scaling.factor, true);
  if (scaling.kind == "llama3") {
    reader.number("low_freq_factor", scaling.low_frequency_factor, true);
    reader.number("high_freq_factor", scaling.high_frequency_factor, true);
    reader.integer("original_max_position_embeddings", scaling.original_max_positions, true);
  }
  if (scaling.kind == "yarn") read_yarn(reader, config.max_positions, scaling);
}

void read_rotary(JsonObjectReader& reader, const std::string& name, const ModelFamily& family, ModelConfig& config) {
  config.rope_theta = family.rope_theta;
  config.rotary_share = family.rotary_share;
  reader.number("rope_theta", config.rope_theta);
  read_rotary_share(reader, family, config);
  // transformers 5 moves all of it into rope_parameters.
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const OrderedJson* rotary = reader.find(key);
    if (!rotary) continue;
    if (!rotary->is_object()) {
      reader.problem(key, "an object");
      continue;
    }
    // Where windowed layers rotate by angles of their own, this key lists both.
    const auto full = rotary->find("full_attention");
    JsonObjectReader part(full != rotary->end() && full->is_object() ? *full : *rotary, name + ": " + key);
    read_rotary_object(part, family, config);
    reader.problems().insert(reader.problems().end(), part.problems().begin(), part.problems().end());
  }
}

/// Keys that change the arithmetic and that we do not compute.
void refuse_unsupported(JsonObjectReader& reader, const ModelFamily& family) {
  if (family.activation == Activation::Silu) reader.only("hidden_act", "silu");
  if (family.activation == Activation::GeluTanh)
    for (const char* key : {"hidden_activation", "hidden_act"}) reader.only(key, "gelu_pytorch_tanh");
  reader.only("attention_dropout", 0.0);
  reader.only("mlp_bias", false);
  reader.only("pretraining_tp", 1);
  if (!family.query_key_value_bias) reader.only("attention_bias", false);
  reader.refuse("quantization_config", "weights are float32, float16 or bfloat16");
  for (const char* key : {"num_experts", "num_local_experts"})
    if (!family.experts) reader.refuse(key, "experts of this family are not computed");
  reader.refuse("n_routed_experts", "experts of this kind are not computed");
  if (find_family_keys(family.name)) return;
  reader.only("use_sliding_window", false);
  refuse_windowed_layers(reader);
}

const ModelFamily& read_family(JsonObjectReader& reader) {
  const OrderedJson* type = reader.find("model_type");
  const std::string name = type && type->is_string() ? type->get<std::string>() : std::string();
  if (const ModelFamily* family = find_model_family(name)) return *family;
  const bool experts = name.find("moe") != std::string::npos || name == "mixtral";
  reader.problem("model_type",
                 quoted_list(model_family_names()) + (experts ? "; other mixtures of experts are not computed" : ""));
  return model_families().front();
}

void read_shape(JsonObjectReader& reader, const ModelFamily& family, ModelConfig& config) {
  config.vocab_size = family.vocab_size;
  reader.integer("vocab_size", config.vocab_size, family.vocab_size == 0);
  reader.integer("hidden_size", config.hidden_size, true);
  reader.integer("intermediate_size", config.intermediate_size, !reader.has("block_ff_dim"));
  reader.integer("num_hidden_layers", config.num_layers, true);
  if (family.heads > 0) config.num_heads = family.heads;
  reader.integer("num_attention_heads", config.num_heads, family.heads == 0);
  config.num_kv_heads = reader.has("num_key_value_heads") || family.kv_heads == 0 ? config.num_heads : family.kv_heads;
  reader.integer("num_key_value_heads", config.num_kv_heads, false);
  const bool divided = reader.has("head_dim") || family.head_dim == 0;
  config.head_dim = divided ? config.hidden_size / std::max(config.num_heads, 1) : family.head_dim;
  reader.integer("head_dim", config.head_dim, false);
  config.rms_norm_epsilon = family.rms_norm_epsilon;
  reader.number("rms_norm_eps", config.rms_norm_epsilon);
  config.tied_head = family.tied_head;
  reader.boolean("tie_word_embeddings", config.tied_head);
  config.max_positions = family.max_positions;
  reader.integer("max_position_embeddings", config.max_positions, false);
}

void read_special_tokens(JsonObjectReader& reader, const ModelFamily& family, ModelConfig& config) {
  config.bos_token = family.bos_token;
  config.pad_token = family.pad_token;
  if (family.eos_token >= 0) config.eos_tokens = {family.eos_token};
  reader.token("bos_token_id", config.bos_token);
  reader.token("pad_token_id", config.pad_token);
  reader.tokens("eos_token_id", config.eos_tokens);
}

OrderedJson rotary_json(const RotaryScaling& scaling) {
  OrderedJson json = {{"rope_type", scaling.kind}, {"factor", scaling.factor}};
  if (scaling.kind == "llama3" || scaling.kind == "yarn")
    json["original_max_position_embeddings"] = scaling.original_max_positions;
  if (scaling.kind == "llama3") {
    json["low_freq_factor"] = scaling.low_frequency_factor;
    json["high_freq_factor"] = scaling.high_frequency_factor;
  }
  if (scaling.kind == "yarn") {
    json["attention_factor"] = scaling.attention_factor;
    json["beta_fast"] = scaling.beta_fast;
    json["beta_slow"] = scaling.beta_slow;
    json["truncate"] = scaling.truncate;
  }
  return json;
}

/// Of a model with other parts, such as a vision tower: "text_config", completed by the keys beside it that are about
/// the text. Of tie_word_embeddings, the one beside it holds, as in transformers 5.
OrderedJson text_config(const OrderedJson& config) {
  const auto text = config.find("text_config");
  if (text == config.end() || !text->is_object()) return config;
  OrderedJson merged = *text;
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id", "torch_dtype", "quantization_config"})
    if (config.contains(key) && !merged.contains(key)) merged[key] = config.at(key);
  constexpr const char* kTied = "tie_word_embeddings";
  if (config.contains(kTied)) merged[kTied] = config.at(kTied);
  return merged;
}

/// Null if there is none: absent would mean the family's default.
OrderedJson token_json(const std::vector<int>& tokens) {
  if (tokens.empty()) return nullptr;
  return tokens.size() == 1 ? OrderedJson(tokens[0]) : OrderedJson(tokens);
}

}  // namespace

Result<ModelConfig> parse_model_config(std::string_view json_text, const std::string& name) {
  CARNOT_ASSIGN_OR_RETURN(const auto whole, parse_json_object<OrderedJson>(json_text, name));
  const OrderedJson json = text_config(whole);
  JsonObjectReader reader(json, whole.contains("text_config") ? name + ": text_config" : name);
  const ModelFamily& family = read_family(reader);
  ModelConfig config{.family = std::string(family.name)};
  read_shape(reader, family, config);
  read_special_tokens(reader, family, config);
  read_rotary(reader, name, family, config);
  const FamilyKeys* keys = find_family_keys(family.name);
  if (keys && config.num_layers <= kMaxModelLayers) keys->read(reader, family, config);
  refuse_unsupported(reader, family);
  if (!reader.problems().empty()) return join_errors(reader.problems());
  if (const Status status = check_model_config(config); !status) return Error{name + ":\n" + status.error().message};
  return config;
}

std::string model_config_json(const ModelConfig& config, const std::string& dtype) {
  const ModelFamily& family = *find_model_family(config.family);
  const auto token = [](int id) { return token_json(id < 0 ? std::vector<int>() : std::vector<int>{id}); };
  const bool gated_by_silu = family.activation == Activation::Silu;
  OrderedJson json = {
      {"architectures", {family.architecture}},
      {"attention_dropout", 0.0},
      {"bos_token_id", token(config.bos_token)},
      {"eos_token_id", token_json(config.eos_tokens)},
      {"head_dim", config.head_dim},
      {gated_by_silu ? "hidden_act" : "hidden_activation", gated_by_silu ? "silu" : "gelu_pytorch_tanh"},
      {"hidden_size", config.hidden_size},
      {"initializer_range", 0.02},
      {"intermediate_size", config.intermediate_size},
      {"max_position_embeddings", config.max_positions},
      {"model_type", config.family},
      {"num_attention_heads", config.num_heads},
      {"num_hidden_layers", config.num_layers},
      {"num_key_value_heads", config.num_kv_heads},
      {"pad_token_id", token(config.pad_token)},
      {"rms_norm_eps", config.rms_norm_epsilon},
      {"rope_scaling", nullptr},
      {"rope_theta", config.rope_theta},
      {"tie_word_embeddings", config.tied_head},
      {"torch_dtype", dtype},
      {"use_cache", true},
      {"vocab_size", config.vocab_size}};
  if (config.rope_scaling.kind != "default") json["rope_scaling"] = rotary_json(config.rope_scaling);
  if (const FamilyKeys* keys = find_family_keys(config.family)) keys->write(config, json);
  return json.dump(2) + "\n";
}

}  // namespace carnot
