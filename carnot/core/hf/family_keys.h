// hf/family_keys.h -- keys of config.json that only some families have. Internal to the room.
//
// Included by sources only: it brings nlohmann/json.
#pragma once

#include <string>
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

/// A list with an entry for each layer; false if the key is absent or wrong.
template <class Take>
bool read_list(JsonObjectReader& reader, const std::string& key, int layers, const std::string& expected,
               const Take& take) {
  const OrderedJson* list = reader.find(key);
  if (!list) return false;
  bool right = list->is_array() && std::ssize(*list) >= layers;
  for (int i = 0; right && i < layers; ++i) right = take(i, (*list)[static_cast<std::size_t>(i)]);
  if (!right) reader.problem(key, expected + " for each of " + std::to_string(layers) + " layers");
  return right;
}

inline constexpr const char* kFull = "full_attention";

/// Each layer's kind.
std::vector<LayerKind> kinds_of(const ModelConfig& config);
/// Lists layers only if they differ from the family's turns.
void set_layers(std::vector<LayerKind> kinds, ModelConfig& config);

/// "layer_types" of a family without windows: refused unless every layer is full attention.
void refuse_windowed_layers(JsonObjectReader& reader);

}  // namespace carnot
