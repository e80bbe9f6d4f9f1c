#include "carnot/core/run/recorded_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "carnot/core/base/file.h"
#include "carnot/core/base/log.h"
#include "carnot/core/base/temporary_name.h"

namespace carnot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
namespace fs = std::filesystem;

class ResumedSettings : public ::testing::Test {
 protected:
  ResumedSettings() : folder_{make_temporary_folder(fs::temp_directory_path()).value()} {
    before_ = set_log_sink([this](LogLevel, const std::string& message) { messages_.push_back(message); });
    Recipe first = recipe({"seed=1", "train.learning_rate=1e-3"});
    EXPECT_TRUE(write_config(folder_, first, 0).ok());
  }
  ~ResumedSettings() override {
    set_log_sink(before_);
    fs::remove_all(folder_.root);
  }

  static Recipe recipe(const std::vector<std::string>& settings) {
    return std::move(Recipe::parse("", "recipe", settings)).value();
  }

  RunFolder folder_;
  std::vector<std::string> messages_;
  LogSink before_;
};

TEST_F(ResumedSettings, ThatDifferAreRefusedWithBothValues) {
  Recipe same = recipe({"seed=1", "train.learning_rate=1e-3", "resume=auto", "threads=3"});
  EXPECT_TRUE(check_resumed_settings(same, folder_.config()).ok());
  Recipe other = recipe({"seed=2", "train.learning_rate=2e-3", "train.steps=7"});
  const auto refused = check_resumed_settings(other, folder_.config());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message,
            folder_.config().string() +
                ": the run to resume was made with other settings:\n  seed: 1 recorded, 2 now\n  "
                "train.learning_rate: 0.001 recorded, 0.002 now\nexpected the recorded ones, resume_changes=allow to "
                "take the new ones, or another run_folder");
  EXPECT_THAT(messages_, IsEmpty());
}

TEST_F(ResumedSettings, ThatAreAllowedAreSaidAndTheEarlierConfigurationStays) {
  const std::string first = read_file(folder_.config()).value();
  Recipe other = recipe({"seed=2", "train.learning_rate=1e-3", "resume_changes=allow"});
  ASSERT_TRUE(check_resumed_settings(other, folder_.config()).ok());
  EXPECT_THAT(messages_, ElementsAre(HasSubstr("continues with other settings:\n  seed: 1 recorded, 2 now")));
  ASSERT_TRUE(write_config(folder_, other, 12).ok());
  EXPECT_EQ(read_file(folder_.earlier_configs() / "until_step_12.yaml").value(), first);
  EXPECT_THAT(read_file(folder_.config()).value(), HasSubstr("seed: 2"));
  EXPECT_THAT(read_file(folder_.config()).value(), Not(HasSubstr("allow"))) << "the permission is for one start";

  // What held for no step is no part of the history.
  Recipe third = recipe({"seed=3", "resume_changes=allow"});
  ASSERT_TRUE(write_config(folder_, third, 12).ok());
  EXPECT_EQ(read_file(folder_.earlier_configs() / "until_step_12.yaml").value(), first);
}

TEST_F(ResumedSettings, ThatSayHowLongARunIsMayChangeAndAreKeptInTheHistory) {
  Recipe longer = recipe({"seed=1", "train.learning_rate=1e-3", "train.steps=500", "train.save_every=5"});
  ASSERT_TRUE(check_resumed_settings(longer, folder_.config()).ok());
  ASSERT_TRUE(write_config(folder_, longer, 100).ok());
  EXPECT_TRUE(fs::exists(folder_.earlier_configs() / "until_step_100.yaml"));
  ASSERT_TRUE(write_config(folder_, longer, 200).ok());
  EXPECT_FALSE(fs::exists(folder_.earlier_configs() / "until_step_200.yaml")) << "nothing changed";
}

TEST_F(ResumedSettings, FreeKeysAreKeysOfARecipe) {
  Recipe any = recipe({});
  std::size_t free = 0;
  const FieldTable table = any.table();
  for (const FieldRow& row : table.rows()) free += how_long_or_how_fast(row.key) ? 1 : 0;
  EXPECT_EQ(free, 55u) << "a key was renamed";
}

TEST_F(ResumedSettings, OfAConfigurationThatCannotBeReadAreTakenOnlyWhenAllowed) {
  ASSERT_TRUE(write_file_atomically(folder_.config(), "seed: [").ok());
  Recipe refused = recipe({}), allowed = recipe({"resume_changes=allow"});
  EXPECT_THAT(check_resumed_settings(refused, folder_.config()).error().message, HasSubstr("resume_changes=allow"));
  EXPECT_TRUE(check_resumed_settings(allowed, folder_.config()).ok());
  EXPECT_THAT(messages_, ElementsAre(HasSubstr("cannot be compared")));
}

Recipe recipe_of(const std::vector<std::string>& settings) {
  return std::move(Recipe::parse("", "recipe", settings)).value();
}

std::vector<std::string> lines(const std::vector<SettingDifference>& differences) {
  std::vector<std::string> text;
  for (const SettingDifference& difference : differences) text.push_back(in_words(difference));
  return text;
}

TEST(SettingDifference, NamesEveryKeyWithBothValues) {
  Recipe recorded = recipe_of({"train.steps=100", "method=grpo"}),
         now = recipe_of({"train.steps=130", "method=grpo + aem", "seed=3"});
  const auto differing =
      differing_settings(recorded, now, [](std::string_view key) { return key.starts_with("method.aem"); });
  EXPECT_THAT(lines(differing), ElementsAre("method.name: grpo recorded, grpo + aem now", "seed: 0 recorded, 3 now",
                                            "train.steps: 100 recorded, 130 now"));
}

TEST(SettingDifference, PassesOverWhereAndHowARunIsComputed) {
  Recipe recorded = recipe_of({"threads=1", "run_folder=a"}),
         now = recipe_of({"threads=8", "run_folder=b", "resume=auto", "resume_changes=allow"});
  EXPECT_THAT(lines(differing_settings(recorded, now)), IsEmpty());
}

TEST(SettingDifference, LeavesOpenHowManyShardsThereAre) {
  Recipe four = recipe_of({"train.virtual_shards=4"}), open = recipe_of({}),
         one = recipe_of({"train.virtual_shards=1"});
  EXPECT_THAT(lines(differing_settings(four, open)), IsEmpty());
  EXPECT_THAT(lines(differing_settings(open, one)), IsEmpty()) << "one process wrote nothing down";
  EXPECT_THAT(lines(differing_settings(four, one)), ElementsAre("train.virtual_shards: 4 recorded, 1 now"));
}

TEST(SettingDifference, AutoLeavesOldLogProbsOpenUnlessTheRunWasAsynchronous) {
  const std::vector<std::string> asynchronous{"rollout.workers=nats://127.0.0.1:4222", "rollout.max_staleness=2",
                                              "objective.importance_cap=3"};
  const auto with = [](std::vector<std::string> settings, const std::string& old_log_probs) {
    settings.push_back("rollout.old_log_probs=" + old_log_probs);
    return recipe_of(settings);
  };
  Recipe same_bits = with({}, "rollout"), now = with({}, "auto");
  EXPECT_THAT(lines(differing_settings(same_bits, now)), IsEmpty());
  Recipe coupled = with(asynchronous, "rollout"), decoupled = with(asynchronous, "auto");
  EXPECT_THAT(lines(differing_settings(coupled, decoupled)),
              ElementsAre("rollout.old_log_probs: rollout recorded, auto now"));
  Recipe measured = with(asynchronous, "recompute");
  EXPECT_THAT(lines(differing_settings(measured, decoupled)), IsEmpty());
}

TEST(SettingDifference, IsEmptyForAFolderWithoutARun) {
  Recipe now = recipe_of({});
  const auto differing = differing_settings("/nowhere/at/all/config.yaml", now);
  ASSERT_TRUE(differing.ok());
  EXPECT_THAT(lines(*differing), IsEmpty());
}

}  // namespace
}  // namespace carnot
