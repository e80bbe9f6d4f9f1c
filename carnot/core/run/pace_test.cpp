#include "carnot/core/run/pace.h"

#include <gtest/gtest.h>

namespace carnot {
namespace {

TEST(Pace, ExpectsTheRestToGoAsFastAsWhatWasDone) {
  Pace pace(0, 100, 50);
  EXPECT_FALSE(pace.seconds_left(50));
  pace.update(20, 90);  // two seconds a unit
  EXPECT_EQ(pace.seconds_left(90), 160);
  EXPECT_EQ(pace.seconds_left(100), 150) << "time goes by between reports";
  EXPECT_EQ(pace.seconds_left(1000), 0);
  pace.update(100, 200);
  EXPECT_FALSE(pace.seconds_left(200)) << "nothing is left";
}

TEST(Pace, LeavesOutWhatAnEarlierProcessDid) {
  Pace resumed(90, 100, 1000);
  EXPECT_FALSE(resumed.seconds_left(1000)) << "nothing was done here yet";
  resumed.update(92, 1020);
  EXPECT_EQ(resumed.done(), 92);
  EXPECT_EQ(resumed.seconds_left(1020), 80) << "ten seconds a unit, eight units";
}

TEST(Pace, StaysWithinItsWork) {
  Pace pace(3, 5, 0);
  pace.update(9, 1);
  EXPECT_EQ(pace.done(), 5);
  pace.update(1, 2);
  EXPECT_EQ(pace.done(), 3);
  Pace none(0, 0, 0);
  none.update(4, 1);
  EXPECT_EQ(none.done(), 0);
  EXPECT_FALSE(none.seconds_left(1));
}

}  // namespace
}  // namespace carnot
