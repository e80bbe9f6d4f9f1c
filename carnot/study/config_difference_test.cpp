#include "carnot/study/config_difference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace carnot {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Recipe recipe(const std::vector<std::string>& settings) {
  return std::move(Recipe::parse("", "recipe", settings)).value();
}

const Ignored kNothing = [](std::string_view) { return false; };

TEST(ConfigDifference, NamesEveryKeyWithBothValues) {
  Recipe there = recipe({"train.steps=100", "method=grpo"}),
         here = recipe({"train.steps=130", "method=grpo + aem", "seed=3"});
  const auto differing =
      differing_settings(there, here, [](std::string_view key) { return key.starts_with("method.aem"); });
  EXPECT_THAT(differing, ElementsAre("method.name: grpo there, grpo + aem here", "seed: 0 there, 3 here",
                                     "train.steps: 100 there, 130 here"));
}

TEST(ConfigDifference, PassesOverWhereAndHowARunIsComputed) {
  Recipe there = recipe({"threads=1", "run_folder=a"}), here = recipe({"threads=8", "run_folder=b", "resume=auto"});
  EXPECT_THAT(differing_settings(there, here, kNothing), IsEmpty());
}

TEST(ConfigDifference, OfAFolderWithoutARunIsNone) {
  Recipe here = recipe({});
  const auto differing = differing_settings("/nowhere/at/all", here, kNothing);
  ASSERT_TRUE(differing.ok());
  EXPECT_THAT(*differing, IsEmpty());
}

}  // namespace
}  // namespace carnot
