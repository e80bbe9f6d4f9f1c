// hf/rotary_family_keys.h -- keys of families that scale rotary positions in ways of their own, and of Mistral, which
// both extend. Internal to the room.
//
// Included by sources only: it brings nlohmann/json.
#pragma once

#include "carnot/core/hf/json_object_reader.h"
#include "carnot/core/nn/model_config.h"

namespace carnot {

/// A window in every layer. One as long as the longest sequence is ignored.
void read_mistral(JsonObjectReader& reader, const ModelFamily& family, ModelConfig& config);
void write_mistral(const ModelConfig& config, OrderedJson& json);

/// Queries that grow with their position. Without "rope_parameters", transformers has those of the 8B model.
void read_ministral3(JsonObjectReader& reader, const ModelFamily& family, ModelConfig& config);
void write_ministral3(const ModelConfig& config, OrderedJson& json);

/// longrope, and heads that are rotated in part.
void read_phi3(JsonObjectReader& reader, const ModelFamily& family, ModelConfig& config);
void write_phi3(const ModelConfig& config, OrderedJson& json);

/// longrope's factor of cosine and sine, as transformers computes it where config.json says nothing.
double longrope_attention_factor(double factor, int original);

}  // namespace carnot
