#include "carnot/studies/seeds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace carnot {
namespace {

using ::testing::ElementsAre;

TEST(Seeds, AreRangesAndNumbersInOrder) {
  EXPECT_THAT(*parse_seeds("0-4"), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(*parse_seeds("7, 1,2-3,2"), ElementsAre(1, 2, 3, 7));
  for (const char* wrong : {"", "a", "1,", "3-1", "-1", "0-1-2", "1.5", "0-99999999"})
    EXPECT_FALSE(parse_seeds(wrong).ok()) << wrong;
}

}  // namespace
}  // namespace carnot
