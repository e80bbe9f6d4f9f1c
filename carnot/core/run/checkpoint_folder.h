// run/checkpoint_folder.h -- checkpoints as folders that are complete or absent. Knows files, not tensors.
//
// checkpoints/global_step_N/ holds the given files and MANIFEST.json with their sizes and SHA-256. It is written
// under another name, synced, and renamed; then checkpoints/latest_checkpointed_iteration.txt is replaced. A crash
// at any moment leaves the earlier checkpoints as they were; what else it leaves, repair_checkpoints() puts right.
//
// Functions that write expect the run's lock (run/folder_lock.h) to be held. Those that read change nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"

namespace carnot {

struct CheckpointFile {
  std::string name{};  ///< may lie in a folder of the checkpoint: "adapter/adapter_config.json"
  std::function<Status(const std::filesystem::path& path)> write{};  ///< makes the file at `path`
};

/// Lets `fill` make a folder next to `path`, syncs it and gives it that name; what had the name is removed afterwards.
/// The name exists at every moment, except on file systems that cannot exchange two names (NFS): there the old
/// folder is called otherwise for a moment. Nothing is left of a failure.
Status replace_folder(const std::filesystem::path& path,
                      const std::function<Status(const std::filesystem::path&)>& fill);

/// Writes step `step`'s checkpoint, in place of one of the same step. On failure nothing of it is left.
Status write_checkpoint(const std::filesystem::path& checkpoints, std::int64_t step,
                        std::span<const CheckpointFile> files);

/// Compares the folder with its manifest; names every file that is missing, cut short or changed. A manifest of another
/// version, or that lists no files, says nothing and is refused.
Status verify_checkpoint(const std::filesystem::path& checkpoint);

/// Steps that have a folder, whole or not, the earliest first. None without `checkpoints`.
Result<std::vector<std::int64_t>> checkpoint_steps(const std::filesystem::path& checkpoints);

struct FoundCheckpoint {
  std::int64_t step = 0;
  std::filesystem::path path{};
  std::vector<std::string> damaged{};  ///< what is wrong with later checkpoints, which were skipped
};

/// The latest checkpoint that verifies; empty if there is no checkpoint at all. An error where all are damaged.
Result<std::optional<FoundCheckpoint>> latest_checkpoint(const std::filesystem::path& checkpoints);

/// The step that a checkpoint's manifest gives.
Result<std::int64_t> checkpoint_step(const std::filesystem::path& checkpoint);

/// Puts right what a stop at a bad moment left: a checkpoint that is whole but has not got its name yet, or lost it,
/// gets it; other leftovers go, and a pointer where there is no checkpoint. A folder that is not there needs no repair.
Status repair_checkpoints(const std::filesystem::path& checkpoints);

/// For a run that resumes from `step`, whose checkpoint exists: later checkpoints are removed, since those steps come
/// again; the pointer names `step`; of the rest the latest `max_checkpoints` stay (0: all). Returns the paths of the
/// later ones.
Result<std::vector<std::filesystem::path>> go_on_from(const std::filesystem::path& checkpoints, std::int64_t step,
                                                      std::int64_t max_checkpoints);

/// Removes the oldest checkpoints until `max_checkpoints` are left; 0 keeps all.
Status prune_checkpoints(const std::filesystem::path& checkpoints, std::int64_t max_checkpoints);

/// Takes these files out of every checkpoint but the latest `keep`, and out of its manifest first. A damaged one stays
/// as it is.
Status thin_checkpoints(const std::filesystem::path& checkpoints, std::span<const std::string> files, std::size_t keep);

/// Whether the checkpoint is one of `checkpoints`.
bool lies_in(const std::filesystem::path& checkpoint, const std::filesystem::path& checkpoints);

/// Whether a folder of this name in checkpoints/ is a checkpoint: global_step_N.
bool is_checkpoint_name(const std::string& name);

std::filesystem::path checkpoint_path(const std::filesystem::path& checkpoints, std::int64_t step);

}  // namespace carnot
