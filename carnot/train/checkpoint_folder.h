// train/checkpoint_folder.h -- checkpoints as folders that are there whole or not at all. Knows files, not tensors.
//
// checkpoints/global_step_N/ holds the given files and MANIFEST.json with their sizes and SHA-256. It is written
// under another name, synced, and renamed; then checkpoints/latest_checkpointed_iteration.txt is replaced. A crash
// at any moment leaves the earlier checkpoints as they were.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "carnot/base/result.h"

namespace carnot {

struct CheckpointFile {
  std::string name{};  ///< may lie in a folder of the checkpoint: "adapter/adapter_config.json"
  std::function<Status(const std::filesystem::path& path)> write{};  ///< makes the file at `path`
};

/// Lets `fill` make a folder beside `path` and puts it in the place of what is there. Nothing is left of a failure.
Status replace_folder(const std::filesystem::path& path,
                      const std::function<Status(const std::filesystem::path&)>& fill);

/// Writes step `step`'s checkpoint, in place of one of the same step. On failure nothing of it is left.
Status write_checkpoint(const std::filesystem::path& checkpoints, std::int64_t step,
                        std::span<const CheckpointFile> files);

/// Compares the folder with its manifest; names every file that is missing, cut short or changed.
Status verify_checkpoint(const std::filesystem::path& checkpoint);

struct FoundCheckpoint {
  std::int64_t step = 0;
  std::filesystem::path path{};
  std::vector<std::string> damaged{};  ///< what is wrong with later checkpoints, which were passed over
};

/// The latest checkpoint that verifies; none where there is no checkpoint at all. An error where all are damaged.
Result<std::optional<FoundCheckpoint>> latest_checkpoint(const std::filesystem::path& checkpoints);

/// Removes the oldest checkpoints until `max_checkpoints` are left; 0 keeps all.
Status prune_checkpoints(const std::filesystem::path& checkpoints, std::int64_t max_checkpoints);

std::filesystem::path checkpoint_path(const std::filesystem::path& checkpoints, std::int64_t step);

}  // namespace carnot
