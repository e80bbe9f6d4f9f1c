// hf/gguf_model.h -- the shape of the model in a GGUF file, read and written. No LibTorch.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/gguf/file.h"
#include "carnot/core/gguf/writer.h"
#include "carnot/core/nn/model_config.h"

namespace carnot {

/// The shape that the metadata gives; its special tokens are the tokenizer's to fill in. Architectures are those of
/// hf/gguf_architecture.h. Refuses what is not computed, all of it at once: a key of the architecture that is not known
/// here, too, since it could change the arithmetic.
Result<ModelConfig> gguf_model_config(const GgufFile& file, const std::string& name);

/// Adds the keys from which gguf_model_config() reads the shape, and to `problems` what they cannot say or llama.cpp
/// does not compute; `name` precedes each. REQUIRES: a shape that can be built.
void add_model(const ModelConfig& config, const std::string& name, GgufSettings& settings,
               std::vector<std::string>& problems);

}  // namespace carnot
