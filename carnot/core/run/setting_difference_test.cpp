#include "carnot/core/run/setting_difference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace carnot {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Recipe recipe(const std::vector<std::string>& settings) {
  return std::move(Recipe::parse("", "recipe", settings)).value();
}

std::vector<std::string> lines(const std::vector<SettingDifference>& differences) {
  std::vector<std::string> text;
  for (const SettingDifference& difference : differences) text.push_back(in_words(difference));
  return text;
}

const Ignored kNothing = [](std::string_view) { return false; };

TEST(SettingDifference, NamesEveryKeyWithBothValues) {
  Recipe recorded = recipe({"train.steps=100", "method=grpo"}),
         now = recipe({"train.steps=130", "method=grpo + aem", "seed=3"});
  const auto differing =
      differing_settings(recorded, now, [](std::string_view key) { return key.starts_with("method.aem"); });
  EXPECT_THAT(lines(differing), ElementsAre("method.name: grpo recorded, grpo + aem now", "seed: 0 recorded, 3 now",
                                            "train.steps: 100 recorded, 130 now"));
}

TEST(SettingDifference, PassesOverWhereAndHowARunIsComputed) {
  Recipe recorded = recipe({"threads=1", "run_folder=a"}),
         now = recipe({"threads=8", "run_folder=b", "resume=auto", "resume_changes=allow"});
  EXPECT_THAT(lines(differing_settings(recorded, now, kNothing)), IsEmpty());
}

TEST(SettingDifference, LeavesOpenHowManyShardsThereAre) {
  Recipe four = recipe({"train.virtual_shards=4"}), open = recipe({}), one = recipe({"train.virtual_shards=1"});
  EXPECT_THAT(lines(differing_settings(four, open, kNothing)), IsEmpty());
  EXPECT_THAT(lines(differing_settings(open, one, kNothing)), IsEmpty()) << "one process wrote nothing down";
  EXPECT_THAT(lines(differing_settings(four, one, kNothing)), ElementsAre("train.virtual_shards: 4 recorded, 1 now"));
}

TEST(SettingDifference, AutoLeavesOldLogProbsOpenUnlessTheRunWasAsynchronous) {
  const std::vector<std::string> asynchronous{"rollout.workers=nats://127.0.0.1:4222", "rollout.max_staleness=2",
                                              "objective.importance_cap=3"};
  const auto with = [](std::vector<std::string> settings, const std::string& old_log_probs) {
    settings.push_back("rollout.old_log_probs=" + old_log_probs);
    return recipe(settings);
  };
  Recipe same_bits = with({}, "rollout"), now = with({}, "auto");
  EXPECT_THAT(lines(differing_settings(same_bits, now, kNothing)), IsEmpty());
  Recipe coupled = with(asynchronous, "rollout"), decoupled = with(asynchronous, "auto");
  EXPECT_THAT(lines(differing_settings(coupled, decoupled, kNothing)),
              ElementsAre("rollout.old_log_probs: rollout recorded, auto now"));
  Recipe measured = with(asynchronous, "recompute");
  EXPECT_THAT(lines(differing_settings(measured, decoupled, kNothing)), IsEmpty());
}

TEST(SettingDifference, IsEmptyForAFolderWithoutARun) {
  Recipe now = recipe({});
  const auto differing = differing_settings("/nowhere/at/all/config.yaml", now, kNothing);
  ASSERT_TRUE(differing.ok());
  EXPECT_THAT(lines(*differing), IsEmpty());
}

}  // namespace
}  // namespace carnot
