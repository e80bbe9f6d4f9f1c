// hf/gguf_mixers.h -- layers without attention, as keys of a GGUF file say them: short convolutions and the gated delta
// rule. Internal to the room.
#pragma once

#include "carnot/core/hf/gguf_keys.h"
#include "carnot/core/nn/model_config.h"

namespace carnot {

/// Whether attention.head_count_kv holds a number for each layer.
bool lists_key_heads(const GgufArchitecture& row);

/// The layers' mixers and the mixers' sizes, after the sizes that every architecture has. Layers that predict tokens
/// after the next one come last in a file, and are not counted.
void read_gguf_mixers(GgufKeyReader& read, ModelConfig& config);
/// Whether text rotates what the model rotates; after the rotary settings.
void check_gguf_sections(GgufKeyReader& read, const ModelConfig& config);
void write_gguf_mixers(GgufKeyWriter& write, const ModelConfig& config);

}  // namespace carnot
