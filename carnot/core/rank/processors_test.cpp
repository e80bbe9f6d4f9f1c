#include "carnot/core/rank/processors.h"

#include <gtest/gtest.h>

namespace carnot {
namespace {

const std::vector<int> kEight{0, 1, 2, 3, 4, 5, 6, 7};

TEST(RankProcessors, AreDividedAmongTheRanksOfOneMachine) {
  const std::vector<RankPlace> places(3, {.host = "a", .processors = kEight});
  for (int rank = 0; rank < 3; ++rank)
    EXPECT_EQ(share_of_machine(places, rank), (MachineShare{.ranks = 3, .threads = 2}));
}

TEST(RankProcessors, AreNotDividedAmongMachines) {
  const std::vector<RankPlace> places{{.host = "a", .processors = kEight}, {.host = "b", .processors = kEight}};
  EXPECT_EQ(share_of_machine(places, 1), (MachineShare{.ranks = 1, .threads = 8}));
}

TEST(RankProcessors, StayWithTheRankThatALauncherHasBoundToThem) {
  const std::vector<RankPlace> places{{.host = "a", .processors = {0, 1, 2}}, {.host = "a", .processors = {3, 4}}};
  EXPECT_EQ(share_of_machine(places, 0), (MachineShare{.ranks = 2, .threads = 3}));
  EXPECT_EQ(share_of_machine(places, 1), (MachineShare{.ranks = 2, .threads = 2}));
}

TEST(RankProcessors, AreAtLeastOne) {
  const std::vector<RankPlace> crowd(3, {.host = "a", .processors = {0, 1}}), unknown(1, {.host = "a"});
  EXPECT_EQ(share_of_machine(crowd, 2).threads, 1);
  EXPECT_EQ(share_of_machine(unknown, 0).threads, 1);
}

TEST(RankProcessors, OfThisProcessSurviveTheWayThroughBytes) {
  const RankPlace own = own_place();
  EXPECT_FALSE(own.host.empty());
  EXPECT_FALSE(own.processors.empty());
  EXPECT_EQ(place_of_bytes(bytes_of_place(own)), own);
  const std::string bytes = bytes_of_place(own);
  EXPECT_EQ(place_of_bytes(bytes.substr(0, bytes.size() - 1)), RankPlace{});
}

}  // namespace
}  // namespace carnot
