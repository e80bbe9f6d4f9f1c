#include "carnot/core/run/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "carnot/core/base/file.h"
#include "carnot/core/base/log.h"
#include "carnot/core/run/checkpoint_folder.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CheckpointKernels : public ::testing::Test {
 protected:
  CheckpointKernels()
      : root_(fs::temp_directory_path() / ("carnot_checkpoint_test_" + std::to_string(::getpid()))),
        recipe_(Recipe::parse(
                    "model: {family: qwen3, hidden_size: 32, intermediate_size: 48, num_layers: 1, num_heads: 2, "
                    "num_kv_heads: 1, head_dim: 16}\nenv: {name: search_qa, train_worlds: 1, held_out_worlds: 1}\n",
                    "tiny.yaml", {})
                    .value()),
        bundle_(ModelBundle::make(recipe_).value()),
        before_(set_log_sink([this](LogLevel level, const std::string& message) {
          if (level == LogLevel::Warning) warnings_.push_back(message);
        })) {
    EXPECT_TRUE(make_folder(root_).ok());
    EXPECT_TRUE(save_checkpoint(root_, 3, {.bundle = &bundle_}, {}, recipe_.run, {}).ok());
  }
  ~CheckpointKernels() override {
    set_log_sink(before_);
    fs::remove_all(root_);
  }

  /// Loads the checkpoint as if a process with these kernels had written it.
  void load(const std::string& kernels) {
    const fs::path checkpoint = checkpoint_path(root_, 3);
    TrainerState state = parse_trainer_state(*read_file(checkpoint / "trainer_state.json"), "state").value();
    EXPECT_EQ(state.kernels, own_kernels(recipe_.run));
    state.kernels = kernels;
    EXPECT_TRUE(write_file_atomically(checkpoint / "trainer_state.json", trainer_state_json(state)).ok());
    const auto loaded = load_checkpoint(checkpoint, {.bundle = &bundle_}, recipe_.run);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    EXPECT_EQ(loaded->step, 3);
  }

  fs::path root_;
  Recipe recipe_;
  ModelBundle bundle_;
  std::vector<std::string> warnings_{};
  LogSink before_;
};

TEST_F(CheckpointKernels, ThatAreThisProcesssOwnGiveNoWarning) {
  load(own_kernels(recipe_.run));
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(CheckpointKernels, OfACheckpointThatRecordsNoneGiveNoWarning) {
  load("");
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(CheckpointKernels, ThatAreOthersGiveAWarningThatNamesBoth) {
  load("another set");
  EXPECT_THAT(warnings_, ElementsAre(AllOf(HasSubstr("trainer_state.json"), HasSubstr("the kernels another set"),
                                           HasSubstr("this process has " + own_kernels(recipe_.run)))));
}

}  // namespace
}  // namespace carnot
