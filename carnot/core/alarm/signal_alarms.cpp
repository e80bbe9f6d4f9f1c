#include "carnot/core/alarm/entries.h"
#include "carnot/core/base/statistics.h"

namespace carnot {
namespace {

/// Of the evaluation before training.
struct Start {
  double success = 0;
  double trajectories = 0;

  Interval interval() const { return wilson_interval(success * trajectories, trajectories); }

  std::string in_words() const {
    return "success before training is " + in_percent(success) + " [" + in_percent(interval().low) + ", " +
           in_percent(interval().high) + "] of " + carnot::in_words(trajectories) + " trajectories";
  }
};

std::optional<Start> start_of(const AlarmInput& input) {
  const auto success = input.metric(input.setting.evaluation);
  const auto trajectories = input.metric("val-aux/" + input.setting.environment + "/trajectories");
  if (input.step > 0 || !success || !trajectories) return std::nullopt;
  return Start{.success = *success, .trajectories = *trajectories};
}

/// Score and count of the training steps since the last evaluation.
constexpr const char* kScoreSum = "falling_evaluation/score_sum";
constexpr const char* kScoreSteps = "falling_evaluation/score_steps";
constexpr const char* kBest = "falling_evaluation/best";
constexpr const char* kScoreAtBest = "falling_evaluation/score_at_best";

}  // namespace

std::optional<Reading> read_no_signal(const AlarmInput& input) {
  const auto low = input.metric("critic/score/min"), high = input.metric("critic/score/max");
  if (!low || !high) return std::nullopt;
  double& differed = input.memory["no_signal/differed"];
  const auto [first, fresh] = input.memory.try_emplace("no_signal/score", *low);
  if (*low != *high || first->second != *low) differed = 1;
  if (differed != 0) return Reading{};
  double& steps = ++input.memory["no_signal/steps"];
  return Reading{true, "every score since the start is " + in_words(*low) + " (" + in_words(steps) + " steps)"};
}

std::optional<Reading> read_equal_groups(const AlarmInput& input) {
  const auto share = input.metric("frac_reward_zero_std");
  if (!share || input.is_on("no_signal")) return std::nullopt;
  if (*share <= input.options().equal_groups) return Reading{};
  return Reading{true, in_percent(*share) + " of the groups have equal rewards"};
}

std::optional<Reading> read_duplicate_tasks(const AlarmInput& input) {
  const auto share = input.metric("rollout/duplicate_tasks");
  if (!share) return std::nullopt;
  if (*share <= input.options().duplicate_tasks) return Reading{};
  return Reading{true, in_percent(*share) + " of the groups repeat the task of another group of the step"};
}

std::optional<Reading> read_starts_hopeless(const AlarmInput& input) {
  const double limit = input.options().low_success;
  if (const auto start = start_of(input)) return Reading{start->interval().high < limit, start->in_words()};
  const auto success = input.environment("success");
  return success && *success > limit ? std::optional(Reading{}) : std::nullopt;
}

std::optional<Reading> read_starts_solved(const AlarmInput& input) {
  const double limit = input.options().high_success;
  if (const auto start = start_of(input)) return Reading{start->interval().low > limit, start->in_words()};
  const auto success = input.environment("success");
  return success && *success < limit ? std::optional(Reading{}) : std::nullopt;
}

std::optional<Reading> read_falling_evaluation(const AlarmInput& input) {
  AlarmMemory& memory = input.memory;
  if (const auto score = input.metric("critic/score/mean")) {
    memory[kScoreSum] += *score;
    memory[kScoreSteps] += 1;
  }
  const auto success = input.metric(input.setting.evaluation);
  if (!success) return std::nullopt;
  const double steps = memory[kScoreSteps];
  const std::optional<double> score = steps > 0 ? std::optional(memory[kScoreSum] / steps) : std::nullopt;
  memory[kScoreSum] = memory[kScoreSteps] = 0;
  const auto best = memory.find(kBest);
  if (best == memory.end() || *success >= best->second) {
    memory[kBest] = *success;
    memory.erase(kScoreAtBest);
    if (score) memory[kScoreAtBest] = *score;
    return Reading{};
  }
  if (!score) return Reading{};
  // The evaluation before training follows no training step: the first score stands for it.
  const double then = memory.try_emplace(kScoreAtBest, *score).first->second;
  if (best->second - *success <= input.options().evaluation_drop || *score <= then) return Reading{};
  return Reading{true, "success in evaluations fell from " + in_percent(best->second) + " to " + in_percent(*success) +
                           " while the training score rose from " + in_words(then) + " to " + in_words(*score)};
}

}  // namespace carnot
