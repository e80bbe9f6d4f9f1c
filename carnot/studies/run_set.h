// studies/run_set.h -- the runs that an analysis was given: found in folders, named by what they try, distinguished by
// seed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"

namespace carnot {

struct RolloutPath {
  std::int64_t step = 0;  ///< N of step_N.jsonl; 0 for other names
  std::filesystem::path path{};
};

struct StudiedRun {
  std::filesystem::path folder{};  ///< of a rollouts file without a run: the file
  /// The method; where runs of one method were given that differ in settings, those settings too. Runs that differ in
  /// their seed alone have one label.
  std::string label{};
  std::string method{};
  std::int64_t seed = 0;
  std::string environment{};
  std::map<std::string, std::string> settings{};  ///< config.yaml by dotted key
  std::vector<RolloutPath> rollouts{};            ///< by step

  /// The setting as a number; `otherwise` where config.yaml has none.
  double number(const std::string& key, double otherwise) const;
};

/// Every run in `paths`: run folders, folders that hold run folders at any depth (`carnot compare`), rollouts files.
/// The start of a seed is not a run. Fails if a path does not exist or holds no run.
Result<std::vector<StudiedRun>> find_runs(std::span<const std::filesystem::path> paths);

/// The labels in the order of their first runs.
std::vector<std::string> labels_of(std::span<const StudiedRun> runs);

}  // namespace carnot
