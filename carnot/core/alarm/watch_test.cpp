#include "carnot/core/alarm/watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "carnot/core/base/random.h"

namespace carnot {
namespace {

using Metrics = std::map<std::string, double>;
using ::testing::ElementsAre;

AlarmSetting maze_setting() { return {.environment = "maze", .evaluation = "val-core/maze/success/mean@1"}; }

/// The steps after which `truncated` starts.
std::vector<int> starts(AlarmWatch& watch, const std::vector<double>& shares) {
  std::vector<int> steps;
  for (std::size_t i = 0; i < shares.size(); ++i)
    for (const RaisedAlarm& raised : watch.watch(static_cast<int>(i) + 1, {{"response_length/clip_ratio", shares[i]}}))
      if (raised.row->name == "truncated") steps.push_back(static_cast<int>(i) + 1);
  return steps;
}

TEST(AlarmWatch, RaisesAnAlarmOnceAndAgainOnlyAfterItWasOver) {
  AlarmWatch watch(maze_setting());
  //                                1  2  3  4  5  6  7  8  9 10 11 12 13 14 15
  EXPECT_THAT(starts(watch, {1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1}), ElementsAre(3, 16));
}

TEST(AlarmWatch, ShowsInTheMetricsWhatLastsAndWhatIsOver) {
  AlarmWatch watch(maze_setting());
  EXPECT_EQ(watch.metrics(), Metrics());
  starts(watch, {1, 1});
  EXPECT_EQ(watch.metrics(), Metrics());
  starts(watch, {1});
  EXPECT_EQ(watch.metrics(), (Metrics{{"alarms/truncated", 1}}));
  starts(watch, {0, 0});
  EXPECT_EQ(watch.metrics(), (Metrics{{"alarms/truncated", 1}}));
  starts(watch, {0});
  EXPECT_EQ(watch.metrics(), (Metrics{{"alarms/truncated", 0}}));
}

TEST(AlarmWatch, StaysAsItIsInStepsThatSayNothing) {
  AlarmWatch watch(maze_setting());
  starts(watch, {1, 1, 1});
  const AlarmMemory before = watch.memory();
  for (int step = 4; step < 10; ++step) EXPECT_TRUE(watch.watch(step, {}).empty());
  EXPECT_EQ(watch.memory(), before);
}

TEST(AlarmWatch, RemembersNothingThatWasReadFromTheClock) {
  AlarmWatch watch(maze_setting());
  const std::map<std::string, double> slow{{"timing_s/gen_waiting", 9}, {"timing_s/step", 10}};
  int raised = 0;
  for (int step = 1; step <= 20; ++step) {
    for (const RaisedAlarm& alarm : watch.watch(step, slow)) raised += alarm.row->of_times;
    EXPECT_EQ(watch.memory(), AlarmMemory{});
  }
  EXPECT_EQ(raised, 1);
}

TEST(AlarmWatch, StopsForTheAlarmsOfTheRecipe) {
  AlarmSetting with = maze_setting();
  with.options.stop = {"truncated"};
  AlarmWatch watch(with);
  starts(watch, {1, 1});
  const auto raised = watch.watch(3, {{"response_length/clip_ratio", 1}, {"actor/grad_norm", 0}});
  EXPECT_THAT(watch.stopping(raised), ElementsAre("truncated"));
  EXPECT_TRUE(AlarmWatch(maze_setting()).stopping(raised).empty());
}

/// Numbers of a step that come close to thresholds, above and below.
Metrics random_step(RandomStream& random) {
  const auto one_of = [&](const std::vector<double>& values) {
    return values[static_cast<std::size_t>(random.uniform() * static_cast<double>(values.size()))];
  };
  Metrics metrics{{"critic/score/min", 0},
                  {"critic/score/max", one_of({0, 0, 0, 1})},
                  {"critic/score/mean", random.uniform()},
                  {"frac_reward_zero_std", one_of({0.5, 1, 1, 1})},
                  {"actor/entropy", one_of({0.001, 0.3, 2})},
                  {"actor/grad_norm", one_of({0, 0.5, 2})},
                  {"response_length/clip_ratio", one_of({0.1, 0.5, 0.5})},
                  {"actor/skipped_updates", 0}};
  if (random.uniform() < 0.3) metrics["val-core/maze/success/mean@1"] = random.uniform();
  return metrics;
}

TEST(AlarmWatch, ContinuedFromItsMemoryRaisesWhatTheUninterruptedOneDoes) {
  RandomStream random(1);
  std::size_t raised_in_all = 0;
  for (int trial = 0; trial < 50; ++trial) {
    AlarmWatch straight(maze_setting()), resumed(maze_setting());
    for (int step = 1; step <= 40; ++step) {
      const Metrics metrics = random_step(random);
      AlarmWatch continued(maze_setting(), resumed.memory());
      const auto expected = straight.watch(step, metrics), found = continued.watch(step, metrics);
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i].row, expected[i].row);
        EXPECT_EQ(found[i].seen, expected[i].seen);
      }
      ASSERT_EQ(continued.memory(), straight.memory());
      raised_in_all += found.size();
      resumed = std::move(continued);
    }
  }
  EXPECT_GT(raised_in_all, 100u);
}

}  // namespace
}  // namespace carnot
