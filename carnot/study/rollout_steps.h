// study/rollout_steps.h -- the rollouts of runs, step by step, and what to do where they lack a signal.
#pragma once

#include <functional>
#include <initializer_list>
#include <span>

#include "carnot/base/fields.h"
#include "carnot/data/rollout_file.h"
#include "carnot/study/run_set.h"

namespace carnot {

/// Which of a run's steps are read.
struct StepRange {
  std::int64_t first = 0;
  std::int64_t last = 0;   ///< 0: to the end
  std::int64_t every = 1;  ///< one of so many, from the first

  void fields(FieldVisitor& visit);
};

/// One file of rollouts, with its included trajectories.
struct StudiedStep {
  const StudiedRun& run;
  const RolloutPath& source;
  const RolloutFile& file;
  std::vector<Trajectory> all{};  ///< numbered as file.credit
  std::vector<int> counting{};    ///< numbers of those that count
};

/// Finds the runs in `paths` and calls `visit` for each of their steps within the range. Fails where there is nothing
/// to read, or where `visit` does.
Result<std::vector<StudiedRun>> visit_rollouts(std::span<const std::filesystem::path> paths, const StepRange& range,
                                               const std::function<Status(const StudiedStep& step)>& visit);

/// Fails where a sampled token of a trajectory that counts has no number in one of the columns: names file, line,
/// column, and what would have written it.
Status require_columns(const StudiedStep& step, std::initializer_list<Column> columns);

/// Fails where no turn of the step has an information gain.
Status require_info_gain(const StudiedStep& step);

/// Fails where the rows hold no advantages.
Status require_credit(const StudiedStep& step);

/// Which of the tokens that the policy sampled; thinking is all that is no action.
enum class SampledKind { Any, Think, Action };

/// Values of the column on the sampled tokens of one kind, in reading order.
std::vector<double> sampled_values(const Trajectory& trajectory, Column column, SampledKind kind = SampledKind::Any);

}  // namespace carnot
