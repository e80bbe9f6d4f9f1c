// hf/adapter_folder.h -- adapters as PEFT keeps them: a folder with adapter_config.json and adapter_model.safetensors.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/nn/model.h"

namespace carnot {

inline constexpr const char* kAdapterConfigFile = "adapter_config.json";
inline constexpr const char* kAdapterWeightsFile = "adapter_model.safetensors";

/// The model's adapters by PEFT's names: "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight".
std::vector<NamedTensor> peft_tensors(const Model& model);

/// The adapter_config.json beside them; `base_model` as in adapter_config_json().
std::string peft_config(const Model& model, const std::string& base_model);

/// What the folder's adapters are, by its configuration (parse_adapter_config()) and the names of its tensors.
Result<LoraOptions> read_adapter_options(const std::filesystem::path& folder);

/// Puts the folder's adapters on the model.
Status load_adapters(Model& model, const std::filesystem::path& folder);

/// In a checkpoint with adapters: the adapters, and in those of earlier versions the weights below, which later ones
/// refer to (hf/base_model.h).
inline constexpr const char* kAdapterFolder = "adapter";
inline constexpr const char* kBaseFolder = "base";

/// Whether the folder is a checkpoint with adapters.
bool holds_adapters(const std::filesystem::path& folder);

/// The folder with the weights below a checkpoint's adapters; compared with what the checkpoint says of it. Where that
/// is not there any more, it is looked for in `moved_to`, if that is not empty.
Result<std::filesystem::path> find_base(const std::filesystem::path& checkpoint,
                                        const std::filesystem::path& moved_to = {});

/// The policy of a folder: of a checkpoint with adapters its base with the adapters on it, so that its bits are those
/// of training; else the folder's own weights. `moved_to` as in find_base().
Result<Model> load_policy(const std::filesystem::path& folder, const at::TensorOptions& options,
                          const std::filesystem::path& moved_to = {});

/// The same policy as plain weights: adapters are merged into them.
Result<Model> load_merged(const std::filesystem::path& folder, const at::TensorOptions& options);

/// The type of a folder's first weight; with adapters, of the base below them.
Result<at::ScalarType> stored_dtype(const std::filesystem::path& folder);

}  // namespace carnot
