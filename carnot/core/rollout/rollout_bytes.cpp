#include "carnot/core/rollout/rollout_bytes.h"

#include <algorithm>
#include <vector>

#include "carnot/core/base/byte_stream.h"
#include "carnot/core/data/group_bytes.h"

namespace carnot {
namespace {

/// The structured binding names all members, so a new member breaks the build until it is added here.
template <class Metrics, class Counts, class Times>
void visit_rollout_metrics(Metrics& metrics, const Counts& counts, const Times& times) {
  auto& [trajectories, branches, turns, sampled_tokens, computed_rows, engine_steps, evictions, infra_failures,
         environment_calls, seconds, seconds_forward, seconds_sampling, seconds_scheduling, seconds_waiting,
         seconds_environment, weight_swaps] = metrics;
  counts(trajectories, branches, turns, sampled_tokens, computed_rows, engine_steps, evictions, infra_failures,
         environment_calls, weight_swaps);
  times(seconds, seconds_forward, seconds_sampling, seconds_scheduling, seconds_waiting, seconds_environment);
}

std::string tree_problem(const Tree& tree, const ExpectedRollout& expected) {
  for (const Turn& turn : tree.turns) {
    for (const TokenId token : turn.tokens)
      if (token < 0 || token >= expected.vocabulary)
        return "token " + std::to_string(token) + "; expected ids below " + std::to_string(expected.vocabulary);
    if (const int oldest = expected.key.policy_version, newest = expected.newest_version.value_or(oldest);
        turn.policy_version < oldest || turn.policy_version > newest)
      return "sampled by version " + std::to_string(turn.policy_version) + "; expected " + std::to_string(oldest) +
             (newest == oldest ? "" : " to " + std::to_string(newest));
    for (const Column column : {Column::LogProbRollout, Column::EntropyRollout})
      if (turn.num_sampled() > 0 && !tree.columns.has(column)) return "no column " + std::string(name_of(column));
  }
  return {};
}

}  // namespace

std::string bytes_of_rollout(const Rollout& rollout) {
  ByteWriter out;
  const auto add = [&](const auto&... member) { (out.add(member), ...); };
  out.add(rollout.stopped);
  visit_rollout_metrics(rollout.metrics, add, add);
  out.add(rollout.failures);
  out.add(bytes_of_groups(rollout.groups));
  return out.take();
}

Result<Rollout> rollout_of_bytes(std::string_view bytes) {
  Rollout rollout;
  ByteReader in(bytes);
  std::string groups;
  const auto get = [&](auto&... member) { (in.get(member), ...); };
  in.get(rollout.stopped);
  visit_rollout_metrics(rollout.metrics, get, get);
  in.get(rollout.failures);
  in.get(groups);
  if (!in.complete())
    return Error{"a rollout of another process: " + std::to_string(bytes.size()) +
                 " bytes that do not encode a rollout"};
  CARNOT_ASSIGN_OR_RETURN(auto read, groups_of_bytes(groups));
  rollout.groups = std::move(read);
  return rollout;
}

void add_metrics(RolloutMetrics& sum, const RolloutMetrics& more, PartTimes how) {
  std::vector<std::int64_t> counts;
  std::vector<double> times;
  visit_rollout_metrics(
      more, [&](const auto&... count) { (counts.push_back(count), ...); },
      [&](const auto&... time) { (times.push_back(time), ...); });
  std::size_t next_count = 0, next_time = 0;
  const auto joined = [how](double a, double b) { return how == PartTimes::Longest ? std::max(a, b) : a + b; };
  visit_rollout_metrics(
      sum, [&](auto&... count) { ((count += counts[next_count++]), ...); },
      [&](auto&... time) { ((time = joined(time, times[next_time++])), ...); });
}

Status check_rollout(const Rollout& rollout, const ExpectedRollout& expected) {
  if (rollout.stopped) return Error{"a stopped rollout"};
  if (rollout.groups.size() != expected.tasks.size())
    return Error{std::to_string(rollout.groups.size()) + " groups; expected " + std::to_string(expected.tasks.size())};
  for (std::size_t g = 0; g < rollout.groups.size(); ++g) {
    const Group& group = rollout.groups[g];
    const RolloutTask& task = expected.tasks[g];
    const auto wrong = [&](const std::string& what) { return Error{"group " + task.uid + ": " + what}; };
    if (group.uid != task.uid || group.task_index != task.task_index || group.seed != expected.key.seed ||
        group.step != expected.key.step)
      return wrong("is another task's: " + group.uid);
    std::size_t leaves = 0;
    for (const Tree& tree : group.trees) {
      leaves += tree.leaves.size();
      if (const std::string problem = tree_problem(tree, expected); !problem.empty()) return wrong(problem);
    }
    if (leaves == 0) return wrong("no trajectory");
  }
  return Done{};
}

}  // namespace carnot
