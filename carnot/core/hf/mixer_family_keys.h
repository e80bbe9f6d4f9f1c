// hf/mixer_family_keys.h -- keys of families in which some layers have another mixer than attention. Internal to the
// room.
//
// Included by sources only: it brings nlohmann/json.
#pragma once

#include "carnot/core/hf/json_object_reader.h"
#include "carnot/core/nn/model_config.h"

namespace carnot {

/// Layers without attention have a short convolution. Older files list those with attention by index.
void read_lfm2(JsonObjectReader& reader, const ModelFamily& family, ModelConfig& config);
void write_lfm2(const ModelConfig& config, OrderedJson& json);

/// Layers without attention have the gated delta rule. Of positions in pictures, which "mrope_section" is about, text
/// has none.
void read_qwen3_5(JsonObjectReader& reader, const ModelFamily& family, ModelConfig& config);
void write_qwen3_5(const ModelConfig& config, OrderedJson& json);

}  // namespace carnot
