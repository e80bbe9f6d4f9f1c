// Every alarm, with a series of steps that deserves it and one that comes close and does not.
#include "carnot/core/alarm/alarms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "carnot/core/alarm/watch.h"

namespace carnot {
namespace {

using Metrics = std::map<std::string, double>;
using ::testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr const char* kEvaluation = "val-core/maze/success/mean@1";

AlarmSetting setting(bool one_kernel_set = false) {
  return {.environment = "maze", .evaluation = kEvaluation, .one_kernel_set = one_kernel_set};
}

/// "NAME STEP" of every alarm that starts; steps are counted from `first`.
std::vector<std::string> started(const AlarmSetting& setting, const std::vector<Metrics>& series,
                                 std::int64_t first = 1) {
  AlarmWatch watch(setting);
  std::vector<std::string> all;
  std::int64_t step = first;
  for (const Metrics& metrics : series) {
    for (const RaisedAlarm& raised : watch.watch(step, metrics))
      all.push_back(std::string(raised.row->name) + " " + std::to_string(step));
    ++step;
  }
  return all;
}

/// A metric that takes these values, step by step.
std::vector<Metrics> series(const std::string& name, const std::vector<double>& values) {
  std::vector<Metrics> all;
  for (const double value : values) all.push_back({{name, value}});
  return all;
}

std::vector<Metrics> scores(const std::vector<std::pair<double, double>>& low_and_high) {
  std::vector<Metrics> all;
  for (const auto& [low, high] : low_and_high) all.push_back({{"critic/score/min", low}, {"critic/score/max", high}});
  return all;
}

Metrics start(double success, double trajectories) {
  return {{kEvaluation, success}, {"val-aux/maze/trajectories", trajectories}};
}

/// Scores of training steps; of an evaluation after a step, its success.
std::vector<Metrics> evaluated(const std::vector<std::pair<double, double>>& score_and_success) {
  std::vector<Metrics> all;
  for (const auto& [score, success] : score_and_success) {
    all.push_back({{"critic/score/mean", score}});
    if (!std::isnan(success)) all.back()[kEvaluation] = success;
  }
  return all;
}

std::vector<Metrics> waits(const std::vector<double>& shares, bool workers) {
  std::vector<Metrics> all;
  for (const double share : shares) {
    all.push_back({{"timing_s/gen_waiting", 20 * share}, {"timing_s/step", 20}});
    if (workers) all.back()["timing_s/trainer_idle"] = 1;
  }
  return all;
}

struct Case {
  std::string name;
  std::vector<Metrics> deserves;
  std::int64_t starts = 0;  ///< at this step
  std::vector<std::vector<Metrics>> quiet;
  bool one_kernel_set = false;
  std::int64_t first = 1;
};

std::vector<Metrics> repeated(const Metrics& metrics, int times) { return std::vector<Metrics>(times, metrics); }

std::vector<Case> cases() {
  const std::string entropy = "actor/entropy", norm = "actor/grad_norm", skipped = "actor/skipped_updates";
  const std::string difference = "rollout_corr/log_prob_abs_diff/";
  std::vector<double> clipped_but_once(39, 3);
  clipped_but_once[19] = 0.9;
  return {
      {"no_signal",
       scores({{0, 0}, {0, 0}}),
       2,
       {scores({{0, 0}, {0, 1}, {0, 0}, {0, 0}}), scores({{0, 0}, {1, 1}, {1, 1}})}},
      {"equal_groups",
       series("frac_reward_zero_std", {1, 0.95, 0.91}),
       3,
       {series("frac_reward_zero_std", {1, 1, 0.9, 1, 1}), series("frac_reward_zero_std", {0.9, 0.9, 0.9, 0.9})}},
      {"duplicate_tasks",
       series("rollout/duplicate_tasks", {0.75, 0.75, 0.75}),
       3,
       {series("rollout/duplicate_tasks", {0.5, 0.5, 0.5, 0.5})}},
      {"starts_hopeless", {start(0, 200)}, 0, {{start(0, 20)}, {start(0.05, 400)}}, false, 0},
      {"starts_solved", {start(1, 200)}, 0, {{start(1, 20)}, {start(0.95, 400)}}, false, 0},
      {"falling_evaluation",
       evaluated({{0.2, 0.5}, {0.3, kNan}, {0.4, 0.35}}),
       3,
       {evaluated({{0.2, 0.5}, {0.3, kNan}, {0.4, 0.41}}),   // within what evaluations vary by
        evaluated({{0.2, 0.5}, {0.3, kNan}, {0.1, 0.3}})}},  // the training score falls, too
      {"low_entropy",
       series(entropy, {0.1, 0.004, 0.003, 0.002}),
       4,
       {series(entropy, {0.1, 0.006, 0.005, 0.005, 0.005}), series(entropy, {0.004, 0.004, 0.1, 0.004})}},
      {"high_entropy",
       series(entropy, {0.3, 1.4, 1.5, 1.6}),
       4,
       {series(entropy, {0.3, 1.2, 1.2, 1.2}), series(entropy, {6, 6.5, 6.9, 6.9})}},
      {"zero_gradient",
       series(norm, {0.1, 0, 0, 0}),
       4,
       {series(norm, {0.1, 0, 0, 1e-6, 0}), series(norm, {1e-7, 1e-7, 1e-7})}},
      {"bad_gradient", series(skipped, {0, 0, 2}), 3, {series(skipped, {0, 0, 0}), {}}},
      {"clipped_gradient",
       series(norm, std::vector<double>(20, 3)),
       20,
       {series(norm, clipped_but_once), series(norm, std::vector<double>(40, 1))}},
      {"high_kl", series("actor/kl_loss", {0.6, 0.7, 0.8}), 3, {series("actor/kl_loss", {0.5, 0.5, 0.5, 0.6})}},
      {"policy_mismatch",
       series(difference + "mean", {0.06, 0.06, 0.06}),
       3,
       {series(difference + "mean", {0.05, 0.05, 0.05, 0.05})}},
      {"kernel_mismatch", series(difference + "max", {0, 1e-7}), 2, {series(difference + "max", {0, 0, 0})}, true},
      {"stale_rollouts", series("async/staleness/mean", {5, 5, 5}), 3, {series("async/staleness/mean", {4, 4, 4, 5})}},
      {"truncated",
       series("response_length/clip_ratio", {0.3, 0.3, 0.3}),
       3,
       {series("response_length/clip_ratio", {0.25, 0.25, 0.25, 1})}},
      {"bad_format",
       series("env/maze/invalid_action", {0.6, 0.6, 0.6}),
       3,
       {series("env/maze/invalid_action", {0.5, 0.5, 0.5, 0.6}), series("env/maze/format", {0.5, 0.5, 0.5})}},
      {"tool_errors", series("tool_call_errors", {0.6, 0.6, 0.6}), 3, {series("tool_call_errors", {0.5, 0.5, 0.5})}},
      {"failing_environment",
       series("env/maze/infra_error", {0.1, 0.1, 0.1}),
       3,
       {series("env/maze/infra_error", {0.05, 0.05, 0.05}), series("env/other/infra_error", {1, 1, 1})}},
      {"slow_environment",
       waits({0.6, 0.6, 0.6}, false),
       3,
       {waits({0.5, 0.5, 0.5}, false), waits({0.6, 0.6, 0.6}, true)}},
  };
}

TEST(Alarms, StartWithSeriesThatDeserveThemAndNotWithThoseThatComeClose) {
  std::set<std::string> tested, all;
  for (const Case& one : cases()) {
    tested.insert(one.name);
    const AlarmSetting with = setting(one.one_kernel_set);
    EXPECT_EQ(started(with, one.deserves, one.first),
              std::vector<std::string>{one.name + " " + std::to_string(one.starts)});
    for (std::size_t i = 0; i < one.quiet.size(); ++i)
      EXPECT_EQ(started(with, one.quiet[i], one.first), std::vector<std::string>()) << one.name << " " << i;
  }
  for (const AlarmRow& row : alarms()) all.emplace(row.name);
  EXPECT_EQ(tested, all);
}

TEST(Alarms, ReadTheFormatWhereTheEnvironmentMeasuresIt) {
  EXPECT_EQ(started(setting(), series("env/maze/format", {0.4, 0.4, 0.4})), std::vector<std::string>{"bad_format 3"});
}

TEST(Alarms, OfTheGradientReadStepsWithoutAnUpdateToo) {
  EXPECT_EQ(started(setting(), series("rollout/groups_kept", {0, 0, 0})), std::vector<std::string>{"zero_gradient 3"});
}

TEST(Alarms, WithOneCauseAreRaisedOnce) {
  const Metrics dead{
      {"critic/score/min", 0}, {"critic/score/max", 0}, {"frac_reward_zero_std", 1}, {"actor/grad_norm", 0}};
  EXPECT_EQ(started(setting(), repeated(dead, 30)), std::vector<std::string>{"no_signal 2"});
}

TEST(Alarms, AreSilentOnNumbersThatAreNotFinite) {
  Metrics broken;
  for (const Case& one : cases())
    for (const auto& [name, value] : one.deserves.front())
      if (name != "actor/skipped_updates") broken[name] = kNan;
  for (const bool one_kernel_set : {false, true})
    EXPECT_EQ(started(setting(one_kernel_set), repeated(broken, 30)), std::vector<std::string>());
}

/// Thresholds that nothing reaches, as docs/alarms.md has them.
TEST(Alarms, CanBeTurnedOff) {
  AlarmSetting off = setting();
  AlarmOptions& options = off.options;
  options.no_signal_steps = options.skipped_updates = options.clipped_steps = 1'000'000'000;
  options.equal_groups = options.duplicate_tasks = options.truncated = options.bad_format = options.tool_errors = 1;
  options.infra_failures = options.environment_wait = options.evaluation_drop = options.high_success = 1;
  options.low_success = options.low_entropy = options.low_gradient = 0;
  options.entropy_rise = options.kl = options.log_prob_difference = options.exact_difference = options.staleness = 1e9;
  for (const Case& one : cases()) {
    off.one_kernel_set = one.one_kernel_set;
    EXPECT_EQ(started(off, one.deserves, one.first), std::vector<std::string>()) << one.name;
  }
}

TEST(Alarms, SayWhatWasSeenWithNumbers) {
  AlarmWatch watch(setting());
  std::vector<RaisedAlarm> raised;
  for (int step = 1; step <= 3; ++step) raised = watch.watch(step, {{"response_length/clip_ratio", 0.3125}});
  ASSERT_EQ(raised.size(), 1u);
  const std::string text = alarm_text(raised.front(), 3, "score 0, response: and so on");
  EXPECT_THAT(text, HasSubstr("ALARM truncated after step 3: 31.2 % of the trajectories end at a token limit.\n"));
  EXPECT_THAT(text, HasSubstr("\n  Usually: "));
  EXPECT_THAT(text, HasSubstr("\n  To try: "));
  EXPECT_THAT(text, HasSubstr("\n  For example: score 0, response: and so on\n"));
  EXPECT_THAT(text, HasSubstr("docs/alarms.md#truncated"));
}

}  // namespace
}  // namespace carnot
