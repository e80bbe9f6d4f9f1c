#include "carnot/core/run/find_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "carnot/core/base/file.h"
#include "carnot/core/base/temporary_name.h"
#include "carnot/core/run/checkpoint_folder.h"
#include "carnot/core/run/run_folder.h"

namespace carnot {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class FoundRuns : public ::testing::Test {
 protected:
  FoundRuns() : root_(make_temporary_folder(fs::temp_directory_path()).value()) {}
  ~FoundRuns() override { fs::remove_all(root_); }

  fs::path write(const fs::path& run, std::int64_t step) {
    const auto write_text = [](const fs::path& path) { return write_file_atomically(path, "{}"); };
    const std::vector<CheckpointFile> files{{"trainer_state.json", write_text}};
    const fs::path checkpoints = RunFolder{run}.checkpoints();
    EXPECT_TRUE(make_folder(checkpoints).ok());
    EXPECT_TRUE(write_checkpoint(checkpoints, step, files).ok());
    return checkpoint_path(checkpoints, step);
  }

  fs::path root_;
};

TEST_F(FoundRuns, GiveTheirLatestCheckpointAndElseTheWarmStarts) {
  const fs::path warm = write(root_ / "warm_start", 6);
  EXPECT_EQ(find_checkpoint(root_).value(), warm);
  write(root_, 1);
  const fs::path latest = write(root_, 2);
  EXPECT_EQ(find_checkpoint(root_).value(), latest);
  EXPECT_EQ(find_model(warm).value(), warm);
}

TEST_F(FoundRuns, WithADamagedLatestCheckpointAreRefusedAndTheWholeOneIsNamed) {
  const fs::path whole = write(root_, 1), damaged = write(root_, 2);
  fs::resize_file(damaged / "trainer_state.json", 1);
  for (const auto& found : {find_checkpoint(root_), find_model(root_)}) {
    ASSERT_FALSE(found.ok());
    EXPECT_THAT(found.error().message, HasSubstr("global_step_2/trainer_state.json: has 1 bytes, expected 2"));
    EXPECT_THAT(found.error().message, HasSubstr("name it: " + whole.string()));
  }
  EXPECT_EQ(find_checkpoint(whole).value(), whole) << "who names it gets it";
  EXPECT_FALSE(find_checkpoint(damaged).ok());
}

}  // namespace
}  // namespace carnot
