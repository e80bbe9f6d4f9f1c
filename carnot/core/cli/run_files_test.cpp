#include "carnot/core/cli/run_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "carnot/core/base/file.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RunFiles : public ::testing::Test {
 protected:
  RunFiles() : folder_(fs::temp_directory_path() / ("carnot_view_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_ / "rollouts");
  }
  ~RunFiles() override { fs::remove_all(folder_); }

  void write(const std::string& name) {
    fs::create_directories((folder_ / name).parent_path());
    EXPECT_TRUE(write_file_atomically(folder_ / name, "{}").ok());
  }

  std::vector<std::int64_t> steps(const Result<std::vector<RolloutsOfStep>>& found) {
    std::vector<std::int64_t> numbers;
    EXPECT_TRUE(found.ok()) << (found.ok() ? "" : found.error().message);
    if (found)
      for (const RolloutsOfStep& one : *found) numbers.push_back(one.step);
    return numbers;
  }

  fs::path folder_;
};

TEST_F(RunFiles, AreInTheOrderOfTheirSteps) {
  for (const char* name : {"step_10.jsonl", "step_9.jsonl", "step_100.jsonl", "notes.txt", "step_x.jsonl"})
    write(std::string("rollouts/") + name);
  EXPECT_THAT(steps(rollouts_at(folder_)), ElementsAre(9, 10, 100));
  EXPECT_THAT(steps(rollouts_at(folder_ / "rollouts" / "step_10.jsonl")), ElementsAre(10));
  EXPECT_THAT(steps(rollouts_at(folder_ / "validation" / "after.jsonl")), ElementsAre(-1));
}

TEST_F(RunFiles, AreReportedMissingByName) {
  const auto none = rollouts_at(folder_);
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error().message, HasSubstr("found no rollouts/step_N.jsonl in it"));
}

TEST_F(RunFiles, OfAFolderOfRunsAreAnsweredWithTheRuns) {
  write("seed_1/grpo/rollouts/step_1.jsonl");
  write("seed_0/grpo+aem/rollouts/step_1.jsonl");
  write("seed_0/warm_start/config.yaml");
  const auto several = rollouts_at(folder_);
  ASSERT_FALSE(several.ok());
  EXPECT_THAT(several.error().message, HasSubstr("expected one of them: " + (folder_ / "seed_0/grpo+aem").string() +
                                                 ", " + (folder_ / "seed_1/grpo").string()));
}

TEST_F(RunFiles, AreChosenByNumbersAndRangesOrAtEvenDistances) {
  for (int step = 1; step <= 130; ++step) write("rollouts/step_" + std::to_string(step) + ".jsonl");
  const auto all = rollouts_at(folder_).value();
  EXPECT_THAT(steps(choose_steps(all, {}, 5)), ElementsAre(1, 33, 65, 97, 130));
  EXPECT_THAT(steps(choose_steps(all, {}, 1)), ElementsAre(130));
  EXPECT_THAT(steps(choose_steps(all, {"7", "3-5", "129-500"}, 5)), ElementsAre(3, 4, 5, 7, 129, 130));
  for (const char* wrong : {"x", "5-3", "-1", "", "1.5"}) EXPECT_FALSE(choose_steps(all, {wrong}, 5).ok()) << wrong;
  const auto beyond = choose_steps(all, {"200", "abc"}, 5);
  ASSERT_FALSE(beyond.ok());
  EXPECT_THAT(beyond.error().message, HasSubstr("there are no rollouts of step 200; there are steps 1 to 130"));
  EXPECT_THAT(beyond.error().message, HasSubstr("expected steps and ranges such as 1,5,10-20, found \"abc\""));
}

TEST_F(RunFiles, HaveTheTokenizerOfTheLatestCheckpointOrOfWhatTheRunStartedFrom) {
  write("rollouts/step_1.jsonl");
  EXPECT_EQ(tokenizer_beside(folder_ / "rollouts" / "step_1.jsonl"), "");
  write("model/tokenizer.json");
  ASSERT_TRUE(
      write_file_atomically(folder_ / "config.yaml", "model:\n  path: \"" + (folder_ / "model").string() + "\"\n")
          .ok());
  EXPECT_EQ(tokenizer_beside(folder_ / "rollouts" / "step_1.jsonl"), folder_ / "model" / "tokenizer.json");
  write("warm_start/checkpoints/global_step_1000/tokenizer.json");
  EXPECT_EQ(tokenizer_beside(folder_ / "rollouts" / "step_1.jsonl"),
            folder_ / "warm_start" / "checkpoints" / "global_step_1000" / "tokenizer.json");
  write("checkpoints/global_step_9/tokenizer.json");
  write("checkpoints/global_step_10/tokenizer.json");
  EXPECT_EQ(tokenizer_beside(folder_ / "rollouts" / "step_1.jsonl"),
            folder_ / "checkpoints" / "global_step_10" / "tokenizer.json");
}

}  // namespace
}  // namespace carnot
