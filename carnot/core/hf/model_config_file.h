// hf/model_config_file.h -- config.json of a Hugging Face folder, read and written. No LibTorch.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "carnot/core/base/result.h"
#include "carnot/core/nn/model_config.h"

namespace carnot {

/// Reads config.json as transformers 4 and 5 write it. A key that asks for something we do not compute is refused by
/// name, all of them at once.
Result<ModelConfig> parse_model_config(std::string_view json, const std::string& name);

/// A config.json that transformers loads; `dtype` as "float32", "bfloat16".
std::string model_config_json(const ModelConfig& config, const std::string& dtype);

/// config.json of a Hugging Face folder.
Result<ModelConfig> load_model_config(const std::filesystem::path& folder);

}  // namespace carnot
