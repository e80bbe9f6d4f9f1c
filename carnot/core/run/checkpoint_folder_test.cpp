#include "carnot/core/run/checkpoint_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "carnot/core/base/file.h"
#include "carnot/core/base/temporary_name.h"
#include "carnot/core/run/run_folder.h"

namespace carnot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
namespace fs = std::filesystem;

CheckpointFile file_of(const std::string& name, const std::string& content) {
  return {name, [content](const fs::path& path) { return write_file_atomically(path, content); }};
}

class Checkpoints : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("carnot_checkpoints_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  Status write(std::int64_t step, const std::string& content = "weights") {
    const std::vector<CheckpointFile> files{file_of("model.safetensors", content), file_of("rng.json", "{}")};
    return write_checkpoint(folder_, step, files);
  }

  std::vector<std::string> entries() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.push_back(entry.path().filename().string());
    return names;
  }

  std::string pointer() const { return read_file(folder_ / "latest_checkpointed_iteration.txt").value(); }

  fs::path folder_;
};

TEST_F(Checkpoints, HoldTheirFilesAManifestAndAPointer) {
  ASSERT_TRUE(write(10).ok());
  EXPECT_THAT(entries(), UnorderedElementsAre("global_step_10", "latest_checkpointed_iteration.txt"));
  EXPECT_EQ(pointer(), "10\n");
  EXPECT_EQ(read_file(folder_ / "global_step_10" / "model.safetensors").value(), "weights");
  EXPECT_THAT(read_file(folder_ / "global_step_10" / "MANIFEST.json").value(), HasSubstr(sha256_hex("weights")));
  EXPECT_TRUE(verify_checkpoint(folder_ / "global_step_10").ok());
}

TEST_F(Checkpoints, OfTheSameStepReplaceEachOther) {
  ASSERT_TRUE(write(10).ok());
  ASSERT_TRUE(write(10, "better").ok());
  EXPECT_EQ(read_file(folder_ / "global_step_10" / "model.safetensors").value(), "better");
  EXPECT_THAT(entries(), UnorderedElementsAre("global_step_10", "latest_checkpointed_iteration.txt"));
}

TEST_F(Checkpoints, NameEveryDamagedFile) {
  ASSERT_TRUE(write(10).ok());
  const fs::path folder = folder_ / "global_step_10";
  fs::resize_file(folder / "model.safetensors", 3);
  ASSERT_TRUE(write_file_atomically(folder / "rng.json", "[]").ok());
  EXPECT_EQ(verify_checkpoint(folder).error().message,
            (folder / "model.safetensors").string() + ": has 3 bytes, expected 7\n" + (folder / "rng.json").string() +
                ": its content changed since it was written");
  fs::remove(folder / "rng.json");
  EXPECT_THAT(verify_checkpoint(folder).error().message, HasSubstr("rng.json: missing: No such file or directory"));
}

TEST_F(Checkpoints, NameADamagedOrMissingManifest) {
  ASSERT_TRUE(write(10).ok());
  const fs::path manifest = folder_ / "global_step_10" / "MANIFEST.json";
  fs::resize_file(manifest, 20);
  EXPECT_THAT(verify_checkpoint(manifest.parent_path()).error().message, HasSubstr("MANIFEST.json: not JSON"));
  ASSERT_TRUE(write_file_atomically(manifest, R"({"version": 1, "step": 10, "files": {"rng.json": 3}})").ok());
  EXPECT_THAT(verify_checkpoint(manifest.parent_path()).error().message, HasSubstr("has no size and sha256"));
  fs::remove(manifest);
  EXPECT_THAT(verify_checkpoint(manifest.parent_path()).error().message, HasSubstr("MANIFEST.json: cannot open"));
}

TEST_F(Checkpoints, TheLatestIsTheHighestStepThatVerifies) {
  EXPECT_FALSE(latest_checkpoint(folder_).value().has_value());
  EXPECT_FALSE(latest_checkpoint(folder_ / "none").value().has_value());
  for (const std::int64_t step : {9, 10, 100}) ASSERT_TRUE(write(step).ok());
  fs::create_directories(folder_ / "global_step_x");
  EXPECT_EQ(latest_checkpoint(folder_).value()->step, 100);
  fs::remove(folder_ / "global_step_100" / "rng.json");
  const auto found = latest_checkpoint(folder_).value();
  EXPECT_EQ(found->step, 10);
  EXPECT_EQ(found->path, folder_ / "global_step_10");
  EXPECT_THAT(found->damaged, ElementsAre(HasSubstr("global_step_100/rng.json: missing")));
}

TEST_F(Checkpoints, ThatAreAllDamagedAreAnError) {
  ASSERT_TRUE(write(1).ok());
  fs::remove(folder_ / "global_step_1" / "rng.json");
  EXPECT_THAT(latest_checkpoint(folder_).error().message, HasSubstr("global_step_1/rng.json: missing"));
}

TEST_F(Checkpoints, ArePrunedFromTheOldest) {
  for (const std::int64_t step : {1, 2, 3, 20}) ASSERT_TRUE(write(step).ok());
  ASSERT_TRUE(prune_checkpoints(folder_, 0).ok());
  EXPECT_EQ(entries().size(), 5u);
  ASSERT_TRUE(prune_checkpoints(folder_, 2).ok());
  EXPECT_THAT(entries(), UnorderedElementsAre("global_step_3", "global_step_20", "latest_checkpointed_iteration.txt"));
}

TEST_F(Checkpoints, ButTheLatestLoseFilesThatOnlyAContinuationNeeds) {
  for (const int step : {1, 2, 3}) ASSERT_TRUE(write(step).ok());
  ASSERT_TRUE(write_file_atomically(folder_ / "global_step_1" / "MANIFEST.json", "{").ok());
  const std::vector<std::string> files{"rng.json", "none.json"};
  for (int again = 0; again < 2; ++again) {
    ASSERT_TRUE(thin_checkpoints(folder_, files, 1).ok());
    EXPECT_TRUE(fs::exists(folder_ / "global_step_1" / "rng.json")) << "damaged";
    EXPECT_FALSE(fs::exists(folder_ / "global_step_2" / "rng.json"));
    EXPECT_TRUE(fs::exists(folder_ / "global_step_3" / "rng.json"));
    for (const int step : {2, 3}) EXPECT_TRUE(verify_checkpoint(checkpoint_path(folder_, step)).ok());
  }
}

TEST_F(Checkpoints, LeaveNothingBehindWhenAFileCannotBeWritten) {
  ASSERT_TRUE(write(1).ok());
  const std::vector<CheckpointFile> files{file_of("a", "a"),
                                          {"b", [](const fs::path&) { return Status(Error{"no b today"}); }}};
  EXPECT_EQ(write_checkpoint(folder_, 2, files).error().message, "no b today");
  EXPECT_THAT(entries(), UnorderedElementsAre("global_step_1", "latest_checkpointed_iteration.txt"));
  EXPECT_EQ(pointer(), "1\n");
}

TEST_F(Checkpoints, LeaveNothingBehindWhenTheDiskIsFull) {
  ASSERT_TRUE(write(1).ok());
  struct rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit tight{.rlim_cur = 1 << 16, .rlim_max = old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  const Status status = write(2, std::string(1 << 20, 'w'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, handler);

  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, HasSubstr("model.safetensors: cannot write: File too large"));
  EXPECT_THAT(entries(), UnorderedElementsAre("global_step_1", "latest_checkpointed_iteration.txt"));
  EXPECT_EQ(latest_checkpoint(folder_).value()->step, 1);
}

TEST_F(Checkpoints, GetTheirNameWhereAStopCameBeforeItAndOtherLeftoversGo) {
  for (const std::int64_t step : {1, 2, 3}) ASSERT_TRUE(write(step).ok());
  const std::string whole = temporary_name().value(), half = temporary_name().value(), again = temporary_name().value();
  fs::rename(folder_ / "global_step_3", folder_ / whole);
  fs::copy(folder_ / whole, folder_ / half);
  fs::remove(folder_ / half / "rng.json");
  fs::copy(folder_ / "global_step_2", folder_ / again);
  fs::rename(folder_ / "global_step_1", folder_ / ".global_step_1.old");  // as version 0.1 called it
  fs::create_directories(folder_ / ".global_step_4.tmp" / "half");
  ASSERT_TRUE(write_file_atomically(folder_ / temporary_name().value(), "1").ok());
  ASSERT_TRUE(repair_checkpoints(folder_).ok());
  EXPECT_THAT(entries(), UnorderedElementsAre("global_step_1", "global_step_2", "global_step_3",
                                              "latest_checkpointed_iteration.txt"));
  EXPECT_EQ(latest_checkpoint(folder_).value()->step, 3);
}

TEST_F(Checkpoints, NeedNoRepairWhereThereAreNoneButForThePointer) {
  ASSERT_TRUE(repair_checkpoints(folder_ / "none").ok());
  ASSERT_TRUE(write(1).ok());
  fs::remove_all(folder_ / "global_step_1");
  ASSERT_TRUE(repair_checkpoints(folder_).ok());
  EXPECT_THAT(entries(), ::testing::IsEmpty());
}

TEST_F(Checkpoints, OfStepsThatComeAgainAreRemovedAndThePointerIsPutRight) {
  for (const std::int64_t step : {1, 2, 3, 4, 5}) ASSERT_TRUE(write(step).ok());
  fs::remove(folder_ / "global_step_5" / "rng.json");
  EXPECT_THAT(go_on_from(folder_, 4, 2).value(), ElementsAre(folder_ / "global_step_5"));
  EXPECT_THAT(entries(), UnorderedElementsAre("global_step_3", "global_step_4", "latest_checkpointed_iteration.txt"));
  EXPECT_EQ(pointer(), "4\n");
  EXPECT_THAT(go_on_from(folder_, 4, 2).value(), ::testing::IsEmpty());
}

TEST_F(Checkpoints, ThatAreReplacedAreThereAtEveryMoment) {
  ASSERT_TRUE(write(1, "old").ok());
  const fs::path model = checkpoint_path(folder_, 1) / "model.safetensors";
  std::atomic<bool> stop = false, gone = false;
  std::thread reader([&] {
    while (!stop)
      if (!fs::exists(model)) gone = true;
  });
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(write(1, "new").ok());
  stop = true;
  reader.join();
  EXPECT_FALSE(gone);
}

TEST_F(Checkpoints, WithAManifestThatListsNothingOrIsOfAnotherVersionAreRefused) {
  ASSERT_TRUE(write(10).ok());
  const fs::path folder = folder_ / "global_step_10", manifest = folder / "MANIFEST.json";
  const std::string whole = read_file(manifest).value();
  const auto problem_of = [&](const std::string& text) {
    EXPECT_TRUE(write_file_atomically(manifest, text).ok());
    const Status status = verify_checkpoint(folder);
    return status ? std::string() : status.error().message;
  };
  EXPECT_EQ(problem_of(whole), "");
  EXPECT_THAT(problem_of(R"({"version": 1, "step": 10, "files": {}})"), HasSubstr("it lists no files"));
  EXPECT_THAT(problem_of(R"({"version": 1, "step": 10})"), HasSubstr("expected JSON with an object `files`"));
  EXPECT_THAT(problem_of(std::string(whole).replace(whole.find("\"version\": 1"), 12, "\"version\": 2")),
              HasSubstr("MANIFEST.json: expected version 1, found 2"));
  EXPECT_THAT(problem_of(std::string(whole).replace(whole.find("\"version\""), 9, "\"v\"")), HasSubstr("found none"));
}

using RunFolders = Checkpoints;

TEST_F(RunFolders, AreMadeWithEverythingInside) {
  const auto folder = open_run_folder(folder_ / "runs" / "first", Resume::Never);
  ASSERT_TRUE(folder.ok());
  EXPECT_FALSE(folder->holds_run());
  EXPECT_TRUE(fs::is_directory(folder->tensorboard()));
  EXPECT_EQ(folder->rollouts(12), folder_ / "runs" / "first" / "rollouts" / "step_12.jsonl");
}

TEST_F(RunFolders, ThatHoldARunAreRefusedUnlessItIsToContinue) {
  const auto folder = open_run_folder(folder_ / "run", Resume::Never);
  ASSERT_TRUE(open_run_folder(folder_ / "run", Resume::Never).ok()) << "nothing was written yet";
  ASSERT_TRUE(write_file_atomically(folder->config(), "seed: 1\n").ok());
  const auto again = open_run_folder(folder_ / "run", Resume::Never);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().message,
            (folder_ / "run").string() +
                ": holds a run already. Continue it with resume=auto, or name another folder with run_folder=...");
  EXPECT_TRUE(open_run_folder(folder_ / "run", Resume::Auto).ok());
}

TEST_F(RunFolders, ThatHoldACheckpointOnlyHoldARun) {
  const auto folder = open_run_folder(folder_ / "run", Resume::Never);
  fs::create_directories(folder->checkpoints() / "global_step_1");
  EXPECT_FALSE(open_run_folder(folder_ / "run", Resume::Never).ok());
}

TEST_F(RunFolders, ThatHoldAnythingElseAreRefused) {
  const auto problem = [](const fs::path& folder) {
    const Status status = check_run_folder(folder, Resume::Auto);
    return status ? "" : status.error().message;
  };
  EXPECT_THAT(problem(""), HasSubstr("run_folder: empty; expected the name of a folder"));
  EXPECT_THAT(problem("/"), HasSubstr("which no run writes"));
  ASSERT_TRUE(make_folder(folder_ / "run").ok());
  for (const char* own : {".carnot-lock", "train.log", "run_id"})
    ASSERT_TRUE(write_file_atomically(folder_ / "run" / own, "").ok());
  EXPECT_EQ(problem(folder_ / "run"), "");
  ASSERT_TRUE(write_file_atomically(folder_ / "run" / "thesis.tex", "").ok());
  EXPECT_EQ(problem(folder_ / "run"),
            (folder_ / "run").string() +
                ": holds thesis.tex, which no run writes. A run's folder holds nothing else; name another one with "
                "run_folder=...");
  EXPECT_FALSE(open_run_folder(folder_ / "run", Resume::Never).ok());
  ASSERT_TRUE(write_file_atomically(RunFolder{folder_ / "run"}.config(), "seed: 1\n").ok());
  EXPECT_EQ(problem(folder_ / "run"), "") << "a run with an added file";
}

TEST_F(RunFolders, AreClearedOfHalfWrittenFiles) {
  const auto folder = open_run_folder(folder_ / "run", Resume::Auto);
  const std::string left = temporary_name().value();
  for (const fs::path& where : {folder->root, folder->rollouts()})
    ASSERT_TRUE(write_file_atomically(where / left, "{").ok());
  ASSERT_TRUE(open_run_folder(folder_ / "run", Resume::Auto).ok());
  EXPECT_FALSE(fs::exists(folder->root / left) || fs::exists(folder->rollouts() / left));
}

TEST_F(RunFolders, ThatCannotBeMadeSayWhy) {
  ASSERT_TRUE(write_file_atomically(folder_ / "file", "").ok());
  const auto folder = open_run_folder(folder_ / "file" / "run", Resume::Never);
  ASSERT_FALSE(folder.ok());
  EXPECT_THAT(folder.error().message, HasSubstr("file/run: cannot create the folder: Not a directory"));
}

}  // namespace
}  // namespace carnot
