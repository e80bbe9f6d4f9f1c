#include "carnot/core/hf/hub_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace carnot {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class HubCache : public ::testing::Test {
 protected:
  void SetUp() override {
    cache_ = fs::path(::testing::TempDir()) / "carnot_hub_cache";
    fs::remove_all(cache_);
    add("models--Qwen--Tiny-0.5B", "main", "abc123");
    add("models--Qwen--Tiny-0.5B", "v2", "def456");
    ::setenv("HF_HUB_CACHE", cache_.c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("HF_HUB_CACHE");
    fs::remove_all(cache_);
  }

  void add(const std::string& model, const std::string& revision, const std::string& commit) const {
    const fs::path folder = cache_ / model;
    fs::create_directories(folder / "refs");
    fs::create_directories(folder / "snapshots" / commit);
    std::ofstream(folder / "refs" / revision) << commit << "\n";
    std::ofstream(folder / "snapshots" / commit / "config.json") << "{}";
  }

  fs::path cache_{};
};

TEST_F(HubCache, AnIdMeansTheSnapshotOfItsBranchOrCommit) {
  const fs::path snapshots = cache_ / "models--Qwen--Tiny-0.5B" / "snapshots";
  EXPECT_EQ(pretrained_folder("Qwen/Tiny-0.5B").value(), snapshots / "abc123");
  EXPECT_EQ(pretrained_folder("Qwen/Tiny-0.5B@v2").value(), snapshots / "def456");
  EXPECT_EQ(pretrained_folder("Qwen/Tiny-0.5B@def456").value(), snapshots / "def456");
}

TEST_F(HubCache, AFolderOnDiskIsItself) {
  EXPECT_EQ(pretrained_folder(cache_.string()).value(), cache_);
  fs::create_directories(cache_ / "Qwen" / "Tiny-0.5B");
  const fs::path before = fs::current_path();
  fs::current_path(cache_);
  EXPECT_EQ(pretrained_folder("Qwen/Tiny-0.5B").value(), fs::path("Qwen/Tiny-0.5B"));
  fs::current_path(before);
}

TEST_F(HubCache, AMissingModelIsAnsweredWithTheCommandThatFetchesIt) {
  EXPECT_EQ(pretrained_folder("Qwen/Other").error().message, "Qwen/Other: no such folder, and no model of this id in " +
                                                                 cache_.string() +
                                                                 "; this fetches it: hf download Qwen/Other");
  EXPECT_THAT(pretrained_folder("Qwen/Tiny-0.5B@v9").error().message,
              HasSubstr("hf download Qwen/Tiny-0.5B --revision v9"));
}

TEST_F(HubCache, WhatIsNotAnIdIsAPath) {
  for (const char* path : {"models/a/b", "/models/a", "model", "", "../a", "a/..", "a/b@../../c", "a b/c"})
    EXPECT_EQ(pretrained_folder(path).value(), fs::path(path));
}

TEST_F(HubCache, AnInterruptedDownloadIsNotAModel) {
  fs::remove(cache_ / "models--Qwen--Tiny-0.5B" / "snapshots" / "abc123" / "config.json");
  EXPECT_FALSE(pretrained_folder("Qwen/Tiny-0.5B").ok());
}

}  // namespace
}  // namespace carnot
