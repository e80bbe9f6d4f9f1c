// run/evaluation.h -- how good the policy is on validation tasks: success with its interval, and what else changed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "carnot/core/base/statistics.h"
#include "carnot/core/collectives/collectives.h"
#include "carnot/core/data/tree.h"
#include "carnot/core/env/environment.h"
#include "carnot/core/rollout/rollout.h"
#include "carnot/core/train/options.h"
#include "carnot/core/train/recipe.h"

namespace carnot {

/// Successes among trajectories, several of which may be of one task.
struct Rate {
  std::int64_t successes = 0;
  std::int64_t trials = 0;
  std::int64_t tasks = 0;
  double squares = 0, products = 0, sizes = 0;  ///< sums over tasks of s * s, s * n, n * n: s of n trials succeed

  void add_task(std::int64_t task_successes, std::int64_t task_trials);

  double value() const { return trials == 0 ? 0 : static_cast<double>(successes) / static_cast<double>(trials); }

  /// How many independent trials tell as much: from `tasks`, where trials of a task all end alike, to `trials`, where
  /// they have nothing in common. By the variance of the value over tasks.
  double effective_trials() const;

  /// 95 %, over tasks: Wilson's with the effective trials.
  Interval interval() const;
};

/// What a server was asked for, and what it counted.
struct EvaluationCost {
  std::int64_t requests = 0;  ///< those that failed included
  std::int64_t prompt_tokens = 0;
  std::int64_t completion_tokens = 0;
};

struct Evaluation {
  Rate success{};                            ///< over all valid trajectories
  std::map<std::string, Rate> by_group{};    ///< success by the value of eval.breakdown
  std::map<std::string, double> measures{};  ///< means of what the environment reports
  double mean_score = 0;
  double response_length = 0;  ///< sampled tokens per trajectory
  double turns = 0;            ///< a trajectory
  double entropy = 0;          ///< a sampled token, nats
  std::int64_t infra_failures = 0;
  double best_of_samples = 0;        ///< share of tasks that any of their samples solves
  std::map<int, double> pass_at{};   ///< by k = 2, 4, ... below the samples of a task: mean of pass_at() over tasks
  std::optional<double> majority{};  ///< share of tasks that their samples' most frequent answer solves
  double seconds = 0;
  std::optional<EvaluationCost> cost{};  ///< where a server's model played
};

/// The chance that any of k samples solves a task, estimated without bias from n >= k of which `successes` do:
/// 1 - C(n - successes, k) / C(n, k) (arXiv:2107.03374).
double pass_at(int k, int samples, int successes);

/// Whether the answer that most valid trajectories of the group give is right: the success of its first giver. Among
/// answers that are equally frequent, the one given first counts; trajectories without an answer do not vote. None
/// where no trajectory votes. First is by number in the group.
std::optional<bool> majority_success(const Group& group);

/// Statistics of finished groups. A majority is among them where any trajectory has an answer; then a task whose
/// trajectories give none counts as not solved by it. A task with fewer than k valid trajectories is left out of that
/// k's pass_at.
Evaluation summarize(const std::vector<Group>& groups, const std::string& breakdown);

/// What an evaluation is made with.
struct EvaluationSetting {
  Collectives& group;  ///< that share the tasks; all get the whole evaluation
  Engine& engine;
  const ChatFamily& chat;
  const EnvironmentFactory& environment;
  std::string environment_name{};  ///< for messages
  const EvaluationOptions& options;
  const RolloutOptions& rollout;
  std::uint64_t seed = 0;
};

/// An evaluation and the trajectories that it is made of.
struct EvaluatedGroups {
  Evaluation evaluation{};
  std::vector<Group> groups{};
  std::vector<std::string> failures{};  ///< one sentence per InfraFailed trajectory
};

/// eval.tasks, or as many as there are where that is fewer: each is evaluated once, times eval.samples.
std::int64_t num_evaluated_tasks(const EvaluationOptions& options, const EnvironmentFactory& environment);

/// Says so where that is fewer.
void note_few_tasks(const Recipe& recipe);

/// Rolls out so many validation tasks, with `options.samples` trajectories each. Empty if `events` end it early.
std::optional<EvaluatedGroups> evaluate(const EvaluationSetting& setting, const RolloutEvents& events = {});

/// As one JSON object, for summary.json and `carnot eval --json`.
std::string evaluation_json(const Evaluation& evaluation);

/// val-core/{environment}/... names of docs/metrics.md.
std::map<std::string, double> evaluation_metrics(const Evaluation& evaluation, const std::string& environment,
                                                 int samples);

/// A table with one column per evaluation, for the terminal. Where it would be wider than `width` columns, a table of
/// each evaluation instead, one below the other.
std::string evaluation_table(const std::vector<std::pair<std::string, Evaluation>>& columns,
                             const std::string& breakdown, int width = 79);

}  // namespace carnot
