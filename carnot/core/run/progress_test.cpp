#include "carnot/core/run/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace carnot {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

/// A stage of `total` units of one second each.
std::string log_of_stage(std::int64_t total) {
  std::ostringstream out;
  double time = 0;
  Progress progress(out, {.now = [&time] { return time; }});
  progress.begin("rollout", total);
  for (std::int64_t done = 1; done <= total; ++done) {
    time += 1;
    progress.update(done);
  }
  progress.end();
  return out.str();
}

TEST(Progress, PrintsNothingAboutShortStagesOffATerminal) { EXPECT_EQ(log_of_stage(20), ""); }

TEST(Progress, PrintsALineAboutLongStagesNowAndThenOffATerminal) {
  EXPECT_EQ(log_of_stage(400),
            "rollout 30/400 (7 %), 6:10 left\nrollout 60/400 (15 %), 5:40 left\n"
            "rollout 120/400 (30 %), 4:40 left\nrollout 240/400 (60 %), 2:40 left\n");
  const std::string hours = log_of_stage(36000);
  EXPECT_THAT(hours, HasSubstr("rollout 30/36000"));
  EXPECT_EQ(std::count(hours.begin(), hours.end(), '\n'), 64) << "every ten minutes";
}

TEST(Progress, EstimatesNoTimeFromTheFirstOfManyUnits) {
  Pace pace(100, 500, 0);
  pace.update(107, 60);
  EXPECT_EQ(pace.seconds_left(60), std::nullopt);
  pace.update(108, 60);
  EXPECT_EQ(pace.seconds_left(60), 60.0 / 8 * 392);
}

TEST(Progress, RedrawsOneLineOnATerminal) {
  std::ostringstream out;
  double time = 0;
  Progress progress(out, {.terminal = true, .now = [&time] { return time; }});
  progress.begin("rollout", 24);
  time = 13;
  progress.update(12);
  EXPECT_THAT(out.str(), EndsWith("\r\x1b[K[============            ] rollout 12/24 (50 %), 0:13 left"));
  const std::size_t drawn = out.str().size();
  progress.update(13);
  EXPECT_EQ(out.str().size(), drawn) << "not more often than redraw_every";
  progress.end();
  EXPECT_THAT(out.str(), EndsWith("\r\x1b[K"));
  EXPECT_EQ(out.str().find('\n'), std::string::npos);
}

TEST(Progress, GoesOnWithTheStageAroundOneThatEnds) {
  std::ostringstream out;
  double time = 0;
  Progress progress(out, {.terminal = true, .now = [&time] { return time; }});
  progress.begin("grpo", 100);
  time = 40;
  progress.update(20);
  progress.begin("evaluation", 400);
  EXPECT_THAT(out.str(), EndsWith("evaluation 0/400 (0 %)"));
  time = 45;
  progress.update(200);
  EXPECT_THAT(out.str(), EndsWith("evaluation 200/400 (50 %), 0:05 left"));
  time = 50;
  progress.end();
  EXPECT_THAT(out.str(), EndsWith("[====                    ] grpo 20/100 (20 %), 2:30 left"));
  progress.update(20);  // the step with the evaluation took 10 s more
  progress.print("");
  EXPECT_THAT(out.str(), EndsWith("grpo 20/100 (20 %), 3:20 left"));
}

TEST(Progress, AResumedStageShowsItsWholePositionAndEstimatesFromItsOwnSteps) {
  std::ostringstream out;
  double time = 0;
  Progress progress(out, {.terminal = true, .now = [&time] { return time; }});
  progress.begin("grpo", 100, 90);
  EXPECT_THAT(out.str(), EndsWith("grpo 90/100 (90 %)"));
  time = 10;
  progress.update(91);
  EXPECT_THAT(out.str(), EndsWith("grpo 91/100 (91 %), 1:30 left"));
  EXPECT_EQ(progress.seconds_left(), 90);
}

TEST(Progress, PrintsLinesAboveTheBar) {
  std::ostringstream out;
  Progress progress(out, {.terminal = true, .now = [] { return 0.0; }});
  progress.begin("update", 4);
  progress.print("step:1");
  EXPECT_THAT(out.str(), HasSubstr("\r\x1b[Kstep:1\n\r\x1b[K["));
}

TEST(Progress, StaysWithinTheTerminalsWidth) {
  std::ostringstream out;
  int columns = 41;
  Progress progress(out, {.terminal = true, .columns = [&] { return columns; }, .now = [] { return 0.0; }});
  const std::string erase = "\r\x1b[K";
  progress.begin("a stage with a rather long name", 4);
  EXPECT_EQ(out.str(), erase + "a stage with a rather long name 0/4 (0");
  out.str("");
  columns = 31;  // the window was made smaller
  progress.print("");
  EXPECT_EQ(out.str(), erase + "\n" + erase + "a stage with a rather long n");
}

TEST(Progress, ANarrowTerminalTakesFromTheBarAndNotFromTheTime) {
  std::ostringstream out;
  double time = 0;
  Progress progress(out, {.terminal = true, .columns = [] { return 60; }, .now = [&time] { return time; }});
  progress.begin("evaluation", 1000);
  time = 65;
  progress.update(500);
  EXPECT_THAT(out.str(), EndsWith("\x1b[K[========         ] evaluation 500/1000 (50 %), 1:05 left"));
}

TEST(Progress, SurvivesEmptyStagesAndTooMuchWork) {
  std::ostringstream out;
  Progress progress(out, {.terminal = true, .now = [] { return 0.0; }});
  progress.update(3);
  EXPECT_EQ(out.str(), "");
  progress.begin("nothing", 0);
  progress.update(5);
  EXPECT_THAT(out.str(), HasSubstr("nothing 0/1"));
}

TEST(ClockTime, IsWrittenAsPeopleReadIt) {
  EXPECT_EQ(clock_time(0.4), "0:00");
  EXPECT_EQ(clock_time(75), "1:15");
  EXPECT_EQ(clock_time(3700), "1:01:40");
}

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
