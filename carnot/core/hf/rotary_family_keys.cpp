#include "carnot/core/hf/rotary_family_keys.h"

#include <algorithm>
#include <cmath>

namespace carnot {
namespace {

/// What transformers 5 has in "rope_parameters", 4 in "rope_scaling"; null if there is neither.
const OrderedJson* find_rotary(const JsonObjectReader& reader) {
  const OrderedJson* rotary = reader.find("rope_parameters");
  return rotary ? rotary : reader.find("rope_scaling");
}

void read_factors(JsonObjectReader& reader, const char* key, std::vector<double>& factors) {
  const OrderedJson* list = reader.find(key);
  if (!list || !list->is_array()) return reader.problem(key, "a list of numbers");
  for (const OrderedJson& factor : *list) {
    if (!factor.is_number()) return reader.problem(key, "a list of numbers");
    factors.push_back(factor.get<double>());
  }
}

void read_longrope(JsonObjectReader& reader, int original, ModelConfig& config) {
  if (original < 2) return reader.problem("original_max_position_embeddings", "an integer above 1");
  RotaryScaling& scaling = config.rope_scaling;
  JsonObjectReader part(*find_rotary(reader), reader.where() + ": rotary scaling");
  read_factors(part, "short_factor", scaling.short_factors);
  read_factors(part, "long_factor", scaling.long_factors);
  part.only("original_max_position_embeddings", original);
  double factor = static_cast<double>(config.max_positions) / original;
  part.number("factor", factor);
  scaling.attention_factor = longrope_attention_factor(factor, original);
  part.number("attention_factor", scaling.attention_factor);
  scaling.original_max_positions = original;
  scaling.long_max_positions = config.max_positions;
  if (scaling.changes_beyond_max_positions()) config.max_positions = std::min(config.max_positions, original);
  reader.problems().insert(reader.problems().end(), part.problems().begin(), part.problems().end());
}

/// transformers 4 accepts an object of rotary scaling only with these three keys.
OrderedJson longrope_json(const RotaryScaling& scaling) {
  OrderedJson json = {
      {"type", "longrope"}, {"short_factor", scaling.short_factors}, {"long_factor", scaling.long_factors}};
  const double usual = longrope_attention_factor(
      static_cast<double>(scaling.long_max_positions) / scaling.original_max_positions, scaling.original_max_positions);
  if (scaling.attention_factor != usual) json["attention_factor"] = scaling.attention_factor;
  return json;
}

}  // namespace

void read_ministral3(JsonObjectReader& reader, const ModelFamily& family, ModelConfig& config) {
  read_mistral(reader, family, config);
  RotaryScaling& scaling = config.rope_scaling;
  const OrderedJson* rotary = find_rotary(reader);
  if (!rotary) {
    config.rope_theta = 1e6;
    scaling = {.kind = "yarn", .factor = 16, .original_max_positions = 16384, .query_growth = 0.1};
    return;
  }
  if (!rotary->is_object()) return;
  JsonObjectReader part(*rotary, reader.where() + ": rope_parameters");
  part.number("llama_4_scaling_beta", scaling.query_growth, true);
  part.integer("original_max_position_embeddings", scaling.original_max_positions,
               scaling.query_growth > 0 && scaling.original_max_positions == 0);
  reader.problems().insert(reader.problems().end(), part.problems().begin(), part.problems().end());
}

void write_ministral3(const ModelConfig& config, OrderedJson& json) {
  write_mistral(config, json);
  OrderedJson rotary = json["rope_scaling"].is_object() ? json["rope_scaling"] : OrderedJson{{"rope_type", "default"}};
  rotary["rope_theta"] = config.rope_theta;
  const int original = config.rope_scaling.original_max_positions;
  rotary["original_max_position_embeddings"] = original > 0 ? original : config.max_positions;
  rotary["llama_4_scaling_beta"] = config.rope_scaling.query_growth;
  json["rope_parameters"] = rotary;
  json.erase("rope_scaling");
}

void read_phi3(JsonObjectReader& reader, const ModelFamily& family, ModelConfig& config) {
  read_mistral(reader, family, config);
  for (const char* key : {"resid_pdrop", "embd_pdrop"}) reader.only(key, 0.0);
  reader.only("lm_head_bias", false);
  int original = 4096;
  reader.integer("original_max_position_embeddings", original, false);
  if (config.rope_scaling.kind == "longrope") read_longrope(reader, original, config);
}

void write_phi3(const ModelConfig& config, OrderedJson& json) {
  write_mistral(config, json);
  for (const char* key : {"resid_pdrop", "embd_pdrop"}) json[key] = 0.0;
  json["partial_rotary_factor"] = config.rotary_share;
  json["original_max_position_embeddings"] = config.max_positions;
  const RotaryScaling& scaling = config.rope_scaling;
  if (scaling.kind != "longrope") return;
  json["max_position_embeddings"] = scaling.long_max_positions;
  json["original_max_position_embeddings"] = scaling.original_max_positions;
  json["rope_scaling"] = longrope_json(scaling);
}

double longrope_attention_factor(double factor, int original) {
  return factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(original));
}

}  // namespace carnot
