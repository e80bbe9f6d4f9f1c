// hf/family_keys.h -- keys of config.json that only some families have. Internal to the room.
//
// Included by sources only: it brings nlohmann/json.
#pragma once

#include <string_view>
#include <vector>

#include "carnot/core/hf/json_object_reader.h"
#include "carnot/core/nn/model_config.h"

namespace carnot {

/// Reads into a config whose shape is complete, and writes what reads back.
struct FamilyKeys {
  std::string_view family{};
  void (*read)(JsonObjectReader& reader, const ModelFamily& family, ModelConfig& config) = nullptr;
  void (*write)(const ModelConfig& config, OrderedJson& json) = nullptr;
};

/// Null if the family has none.
const FamilyKeys* find_family_keys(std::string_view family);

/// Each layer's kind.
std::vector<LayerKind> kinds_of(const ModelConfig& config);
/// Lists layers only if they differ from the family's turns.
void set_layers(std::vector<LayerKind> kinds, ModelConfig& config);

/// "layer_types" of a family without windows: refused unless every layer is full attention.
void refuse_windowed_layers(JsonObjectReader& reader);

}  // namespace carnot
