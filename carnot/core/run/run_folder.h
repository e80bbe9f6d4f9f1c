// run/run_folder.h -- the layout of a run's folder, and the check before a run starts writing into it.
//
//   .carnot-lock           which process is writing (run/folder_lock.h), while one is
//   config.yaml            the resolved recipe
//   run_id                 names the run to trackers (run/tracking.h); if there is one
//   earlier_configs/       until_step_N.yaml: what it was before the run resumed with other settings
//   metrics.jsonl          one line a step
//   tensorboard/           the same numbers as event files
//   rollouts/step_N.jsonl  trajectories (docs/trajectory_format.md)
//   validation/            evaluations (run/stages.h)
//   checkpoints/           global_step_N/ and latest_checkpointed_iteration.txt (run/checkpoint_folder.h)
//   summary.json           results before and after, peak memory; its presence says that the run is finished
//   warm_start/            the SFT stage's folder, with this layout; if there was SFT
//   base/                  random weights under adapters; if there are any
//   view.html              the page of `carnot view`, once that was called
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "carnot/core/base/result.h"

namespace carnot {

struct RunFolder {
  std::filesystem::path root{};

  std::filesystem::path config() const { return root / "config.yaml"; }
  std::filesystem::path run_id() const { return root / "run_id"; }
  std::filesystem::path earlier_configs() const { return root / "earlier_configs"; }
  std::filesystem::path metrics() const { return root / "metrics.jsonl"; }
  std::filesystem::path tensorboard() const { return root / "tensorboard"; }
  std::filesystem::path rollouts() const { return root / "rollouts"; }
  std::filesystem::path rollouts(std::int64_t step) const;
  std::filesystem::path validation() const { return root / "validation"; }
  std::filesystem::path checkpoints() const { return root / "checkpoints"; }

  /// True if a run has written its configuration, metrics or a checkpoint.
  bool holds_run() const;
};

enum class Resume {
  Never,  ///< a folder that holds a run is refused
  Auto,   ///< an existing run is continued
};

/// Refuses what a run may not write into: no name at all, and a folder with anything but a run, hidden files and logs
/// (*.log); with `resume` Never, one with a run. Changes nothing.
Status check_run_folder(const std::filesystem::path& root, Resume resume);

/// Makes the folder and those inside it, and clears away half-written files that a kill left. Refuses as
/// check_run_folder does, and says why where nothing can be written.
/// REQUIRES: the caller holds the folder's lock.
Result<RunFolder> open_run_folder(const std::filesystem::path& root, Resume resume);

}  // namespace carnot
