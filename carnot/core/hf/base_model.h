// hf/base_model.h -- the weights under adapters: a folder, named by its path and by the hashes of its files.
//
// Adapters are small and their base is not, so checkpoints refer to it. What they refer to is compared before it is
// used: adapters on other weights would be another policy.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "carnot/core/base/result.h"

namespace carnot {

/// In a checkpoint with adapters.
inline constexpr const char* kBaseModelFile = "base_model.json";

struct BaseModel {
  std::filesystem::path folder{};               ///< absolute
  std::map<std::string, std::string> sha256{};  ///< by name in the folder: config.json and what holds the weights
};

/// A Hugging Face folder or a checkpoint as it is now. Reads all of its weights once.
Result<BaseModel> base_model_of(const std::filesystem::path& folder);

/// Fails if the folder is missing or has changed; the message says what to do.
Status check_base_model(const BaseModel& base);

/// Whether the base is in the folder of the run that `checkpoint` (RUN/checkpoints/global_step_N) belongs to.
bool is_of_same_run(const BaseModel& base, const std::filesystem::path& checkpoint);

/// What `checkpoint` holds in kBaseModelFile. A base of the same run is named by its path from there, so that the run's
/// folder can be moved.
std::string base_model_json(const BaseModel& base, const std::filesystem::path& checkpoint);

/// Empty if the checkpoint refers to no base. Where the folder is not there any more, `moved_to` takes its place, if
/// that is not empty. Compares no hashes.
Result<std::optional<BaseModel>> read_base_model(const std::filesystem::path& checkpoint,
                                                 const std::filesystem::path& moved_to = {});

}  // namespace carnot
