// run/tracking.h -- reports the run to a tracker: the messages of docs/trackers.md, from start to end.
//
// The tracker is a program of the user's (track.command). It only receives messages: nothing that it does or fails to
// do changes or delays the run (subprocess/listener.h). Every number it gets is in the run folder, too.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "carnot/core/base/result.h"
#include "carnot/core/data/rollout_file.h"
#include "carnot/core/run/metrics_writer.h"
#include "carnot/core/run/run_folder.h"
#include "carnot/core/subprocess/listener.h"
#include "carnot/core/train/recipe.h"

namespace carnot {

/// Stages by the names that trackers know. Each counts its own steps.
inline constexpr std::string_view kSftStage = "sft";
inline constexpr std::string_view kTrainingStage = "train";

class Tracking {
 public:
  /// Without a tracker: everything below does nothing.
  Tracking() = default;
  /// Ends as "failed" what was not ended.
  ~Tracking();
  Tracking(Tracking&&) noexcept = default;
  Tracking& operator=(Tracking&&) noexcept = default;

  /// Starts track.command, if there is one. The run's id is the folder's, or a new one, which keep_id() writes.
  /// `resumed`: the run continues from a checkpoint. The error says why the program cannot be started.
  static Result<Tracking> start(Recipe& recipe, const RunFolder& folder, bool resumed);

  /// Writes the id into the folder, so that the resumed run has the same. REQUIRES: the folder is there.
  Status keep_id(const RunFolder& folder) const;

  /// A stage continues after `step` of its `steps`.
  void stage(std::string_view name, std::int64_t step, std::int64_t steps);

  void metrics(std::string_view stage, std::int64_t step, const StepMetrics& metrics);

  /// track.transcripts of the step's trajectories, at even distances in their order.
  void transcripts(std::int64_t step, std::span<const Group> groups, const Decode& decode);

  /// Waits for the tracker to finish, for at most track.finish_seconds. `status`: complete, interrupted, failed;
  /// `message` says why it failed.
  void end(std::string_view status, const std::string& message = "");

 private:
  std::string id_{};
  int transcripts_ = 0;
  std::unique_ptr<Listener> listener_{};
};

}  // namespace carnot
