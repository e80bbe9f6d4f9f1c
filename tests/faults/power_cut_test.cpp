// A power cut at any moment of a run: whatever unsynced data the disk has lost, the run continues from the last
// checkpoint that it had announced and ends with the uninterrupted run's files.
#include "power_cut.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "cases.h"
#include "fault.h"
#include "small_run.h"
#include "trace.h"

namespace carnot::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::Pair;

TracedCall made(const std::string& path, std::uint64_t inode) {
  return {.name = "open", .inode = inode, .offset = static_cast<long>(Opened::Made), .path = path};
}
TracedCall written(std::uint64_t inode, const std::string& data, long offset = 0) {
  return {.name = "write", .result = static_cast<long>(data.size()), .inode = inode, .offset = offset, .data = data};
}
TracedCall synced(const std::string& path, std::uint64_t inode) {
  return {.name = "fsync", .inode = inode, .path = path};
}
TracedCall renamed(const std::string& from, const std::string& to) {
  return {.name = "rename", .path = from, .second = to};
}

TEST(PowerCut, WithoutASyncNothingSurvives) {
  const std::vector<TracedCall> calls{made("/d/a", 1), written(1, "text"), synced("/d/a", 1)};
  EXPECT_THAT(disk_after(calls, "/d", {.calls = 3}), ElementsAre());
  EXPECT_THAT(disk_after(calls, "/d", {.calls = 2, .unsynced = Unsynced::NamesKept}), ElementsAre(Pair("a", "")));
}

TEST(PowerCut, SyncedFilesInSyncedFoldersSurvive) {
  const std::vector<TracedCall> calls{made("/d/a", 1), written(1, "text"),         synced("/d/a", 1),
                                      synced("/d", 9), written(1, " and more", 4), renamed("/d/a", "/d/b")};
  EXPECT_THAT(disk_after(calls, "/d", {.calls = calls.size()}), ElementsAre(Pair("a", "text")));
  EXPECT_THAT(disk_after(calls, "/d", {.calls = calls.size(), .unsynced = Unsynced::NamesKept}),
              ElementsAre(Pair("b", "text")));
}

TEST(PowerCut, ARenameBeforeTheSyncOfTheFileMayReplaceTheOldFileByAnEmptyOne) {
  const std::vector<TracedCall> calls{made("/d/a", 1), written(1, "old"), synced("/d/a", 1),      synced("/d", 9),
                                      made("/d/t", 2), written(2, "new"), renamed("/d/t", "/d/a")};
  EXPECT_THAT(disk_after(calls, "/d", {.calls = 7, .unsynced = Unsynced::NamesKept}), ElementsAre(Pair("a", "")));
}

TEST(PowerCut, SinglePagesOfAWriteMayBeLostIndependently) {
  std::vector<TracedCall> calls{made("/d/a", 1), synced("/d", 9)};
  calls.push_back(written(1, std::string(8192, 'x')));
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 40; ++seed)
    seen.insert(disk_after(calls, "/d", {.calls = 3, .unsynced = Unsynced::Mixed, .seed = seed}).at("a"));
  EXPECT_TRUE(seen.contains(""));
  EXPECT_TRUE(seen.contains(std::string(8192, 'x')));
  EXPECT_TRUE(seen.contains(std::string(4096, '\0') + std::string(4096, 'x')));
  EXPECT_TRUE(seen.contains(std::string(4096, 'x') + std::string(4096, '\0')));
}

class PowerCutRuns : public ::testing::Test {
 protected:
  void record() {
    const fs::path trace = run_.next_to("trace");
    const ProgramRun run = run_interposed(run_.command(), {.folder = run_.world(), .trace = trace});
    ASSERT_EQ(run.exit, 0) << run.err;
    straight_ = content_of(run_.world());
    calls_ = read_trace(trace);
  }

  /// The step of the checkpoint that the run had announced: its pointer was renamed and the folder synced.
  int announced(std::size_t calls) const {
    int named = 0, certain = 0;
    const std::string folder = (run_.folder() / "checkpoints").string();
    const std::string pointer = folder + "/latest_checkpointed_iteration.txt";
    for (const TracedCall& call : std::span(calls_).first(calls)) {
      if (call.name == "rename" && call.second == pointer) ++named;
      if (call.name == "fsync" && call.path == folder) certain = named;
    }
    return certain;
  }

  /// What must exist for the run to continue after `step`.
  static void expect_keeps(const DiskContent& disk, int step) {
    const std::string folder = "run/checkpoints/";
    if (step == 0) return;
    EXPECT_GE(disk.at(folder + "latest_checkpointed_iteration.txt"), std::to_string(step));
    bool found = false;
    for (int later = step; later <= 2; ++later)
      found = found || disk.contains(folder + "global_step_" + std::to_string(later) + "/MANIFEST.json");
    EXPECT_TRUE(found) << "no checkpoint of step " << step << " or later";
    const std::string& metrics = disk.at("run/metrics.jsonl");
    EXPECT_NE(metrics.find("{\"step\":" + std::to_string(step) + ","), std::string::npos)
        << "metrics.jsonl lost lines of a step that has a checkpoint";
  }

  void cut(const PowerCut& cut) {
    const DiskContent disk = disk_after(calls_, run_.world(), cut);
    run_.reset();
    write_disk(disk, run_.world());
    expect_keeps(disk, announced(cut.calls));
    const ProgramRun again = run_carnot(run_.command(), {.deadline = kHang});
    EXPECT_EQ(again.exit, 0) << again.err;
    EXPECT_EQ(difference(straight_, content_of(run_.world())), "");
  }

  /// After every call that changes something. A disk content that was tried already is not a separate case.
  void try_cuts(Unsynced unsynced, std::uint64_t seed = 0) {
    record();
    std::vector<Case> cases;
    std::optional<DiskContent> last;
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      if (!changes_disk(calls_[i])) continue;
      const PowerCut after{.calls = i + 1, .unsynced = unsynced, .seed = seed + i};
      DiskContent disk = disk_after(calls_, run_.world(), after);
      if (disk == last) continue;
      last = std::move(disk);
      cases.push_back({.name = std::to_string(i + 1) + " " + text_of(calls_[i], run_.world()),
                       .check = [this, after] { cut(after); }});
    }
    run_cases(cases);
  }

  SmallRun run_;
  FolderContent straight_;
  std::vector<TracedCall> calls_;
};

TEST_F(PowerCutRuns, WithOnlySyncedDataContinueToTheUninterruptedRunsFiles) { try_cuts(Unsynced::Lost); }

TEST_F(PowerCutRuns, WithNamesButNoDataContinueToTheUninterruptedRunsFiles) { try_cuts(Unsynced::NamesKept); }

TEST_F(PowerCutRuns, WithAMixtureContinueToTheUninterruptedRunsFiles) { try_cuts(Unsynced::Mixed, 1000); }

TEST_F(PowerCutRuns, WithAnotherMixtureContinueToTheUninterruptedRunsFiles) { try_cuts(Unsynced::Mixed, 2000); }

}  // namespace
}  // namespace carnot::testing
