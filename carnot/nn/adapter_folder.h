// nn/adapter_folder.h -- adapters as PEFT keeps them: a folder with adapter_config.json and adapter_model.safetensors.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "carnot/base/result.h"
#include "carnot/nn/model.h"

namespace carnot {

inline constexpr const char* kAdapterConfigFile = "adapter_config.json";
inline constexpr const char* kAdapterWeightsFile = "adapter_model.safetensors";

/// The model's adapters by PEFT's names: "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight".
std::vector<NamedTensor> peft_tensors(const Model& model);

/// What the folder's adapters are, by its configuration (parse_adapter_config()) and the names of its tensors.
Result<LoraOptions> read_adapter_options(const std::filesystem::path& folder);

/// Puts the folder's adapters on the model.
Status load_adapters(Model& model, const std::filesystem::path& folder);

/// In a checkpoint with adapters, beside the merged weights: the weights below, and the adapters.
inline constexpr const char* kBaseFolder = "base";
inline constexpr const char* kAdapterFolder = "adapter";

/// The policy of a checkpoint: base/ with the adapters of adapter/ on it where those are there, so that its bits are
/// those of training; else the folder's own weights.
Result<Model> load_policy(const std::filesystem::path& checkpoint, const at::TensorOptions& options);

}  // namespace carnot
