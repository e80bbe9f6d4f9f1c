#include "carnot/core/alarm/options.h"

#include "carnot/core/alarm/alarms.h"

namespace carnot {

void AlarmOptions::fields(FieldVisitor& visit) {
  std::vector<std::string> names;
  for (const AlarmRow& row : alarms()) names.emplace_back(row.name);
  visit.field("stop", stop, "alarms that end the run, with a checkpoint and exit status 3 (docs/alarms.md)",
              one_of(names));
  visit.field(
      "steps", steps,
      "training steps in a row for which most conditions must hold before their alarm starts, and must not hold "
      "before it is over",
      at_least(1));
  visit.field("no_signal_steps", no_signal_steps, "first steps in which all scores are equal: no_signal", at_least(1));
  visit.field("equal_groups", equal_groups, "share of groups without spread, above it: equal_groups", between(0, 1));
  visit.field("duplicate_tasks", duplicate_tasks,
              "share of a step's groups whose task is that of another group of the step, above it: duplicate_tasks",
              between(0, 1));
  visit.field("low_success", low_success,
              "success before training whose 95 % interval is below it: starts_hopeless; 0: never", between(0, 1));
  visit.field("high_success", high_success,
              "success before training whose 95 % interval is above it: starts_solved; 1: never", between(0, 1));
  visit.field("low_entropy", low_entropy, "mean entropy of a token in nats, below it: low_entropy; 0: never",
              at_least(0));
  visit.field("entropy_rise", entropy_rise, "nats by which it exceeds the first step's, above it: high_entropy",
              above(0));
  visit.field("low_gradient", low_gradient, "gradient norm, below it: zero_gradient; 0: never", at_least(0));
  visit.field("skipped_updates", skipped_updates,
              "updates that a step skips since a gradient is not finite, from it on: bad_gradient", at_least(1));
  visit.field("clipped_steps", clipped_steps,
              "steps in a row whose gradient norm exceeds train.max_grad_norm, from it on: clipped_gradient",
              at_least(1));
  visit.field("truncated", truncated, "share of trajectories that end at a token limit, above it: truncated",
              between(0, 1));
  visit.field("bad_format", bad_format,
              "share of turns that the environment could not act on, or of trajectories without the expected format, "
              "above it: bad_format",
              between(0, 1));
  visit.field("tool_errors", tool_errors, "share of tool calls that fail, above it: tool_errors", between(0, 1));
  visit.field("kl", kl, "KL to the reference in nats, above it: high_kl", at_least(0));
  visit.field("log_prob_difference", log_prob_difference,
              "mean absolute difference in nats between the rollout's log-probabilities and the trainer's, above it: "
              "policy_mismatch",
              at_least(0));
  visit.field("exact_difference", exact_difference,
              "the largest such difference where both come from the same kernels, above it: kernel_mismatch",
              at_least(0));
  visit.field("infra_failures", infra_failures,
              "share of trajectories lost to infrastructure failures, above it: failing_environment", between(0, 1));
  visit.field("environment_wait", environment_wait,
              "share of a step's time in which nothing can be decoded until an environment answers, above it: "
              "slow_environment",
              between(0, 1));
  visit.field("staleness", staleness, "mean number of updates that rollouts are behind, above it: stale_rollouts",
              at_least(0));
  visit.field("evaluation_drop", evaluation_drop,
              "success in evaluations below the best so far, by more than it while the training score rises: "
              "falling_evaluation; 1: never",
              between(0, 1));
}

}  // namespace carnot
