#include "carnot/core/base/nearest_word.h"

#include <gtest/gtest.h>

namespace carnot {
namespace {

TEST(EditDistance, CountsChangesAndSwaps) {
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("temperature", "temperature"), 0);
  EXPECT_EQ(edit_distance("temprature", "temperature"), 1);
  EXPECT_EQ(edit_distance("stpes", "steps"), 1);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
}

TEST(NearestWord, IsTheOneThatWasProbablyMeant) {
  const std::vector<std::string> known{"ppo", "grpo", "rloo"};
  EXPECT_EQ(nearest_word("grop", known), "grpo");
  EXPECT_EQ(nearest_word("zebra", known), "");
  EXPECT_EQ(unknown_word("method", "grop", known), "there is no method 'grop'; did you mean 'grpo'?");
  EXPECT_EQ(unknown_word("method", "zebra", known), "there is no method 'zebra'; there are: ppo, grpo, rloo");
}

}  // namespace
}  // namespace carnot
