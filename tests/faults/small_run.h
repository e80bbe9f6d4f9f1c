// faults/small_run.h -- the smallest run that writes every kind of file, and what a folder holds, for comparison.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "../cli/program.h"

namespace carnot::testing {

/// Path below the folder to content, without what may differ between two equal runs: times and memory in JSON, event
/// files, the lock.
using FolderContent = std::map<std::string, std::string>;
FolderContent content_of(const std::filesystem::path& folder);

/// Empty, or the files in which the two differ.
std::string difference(const FolderContent& expected, const FolderContent& found);

/// One step of SFT and two of training, a checkpoint each, of which one is kept; evaluations, metrics, event files,
/// rollouts. About a second.
class SmallRun {
 public:
  SmallRun();

  /// Without links in it. All runs of a test take place here, at the same path, so that files with paths compare.
  const std::filesystem::path& world() const { return world_; }
  std::filesystem::path folder() const { return world_ / "run"; }

  /// Starts the run in `folder()`, or continues it.
  std::vector<std::string> command(const std::vector<std::string>& settings = {}) const;
  const std::string& recipe() const { return recipe_; }

  /// A path outside of the world.
  std::string next_to(const std::string& name) const { return scratch_.path(name); }

  /// Empties the world, and copies the folder `start` into it if one is named.
  void reset(const std::filesystem::path& start = {}) const;

 private:
  ScratchFolder scratch_;
  std::filesystem::path world_;
  std::string recipe_;
};

}  // namespace carnot::testing
