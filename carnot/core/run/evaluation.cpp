#include "carnot/core/run/evaluation.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <span>

#include "carnot/core/base/check.h"
#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/log.h"
#include "carnot/core/branch/branch.h"
#include "carnot/core/data/trajectory.h"
#include "carnot/core/train/step_gather.h"

namespace carnot {
namespace {

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

std::string number(double value, const char* format = "%.3g") {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string with_interval(const Rate& rate) {
  const Interval interval = rate.interval();
  char text[64];
  std::snprintf(text, sizeof text, "%.1f %% [%.1f, %.1f]", 100 * rate.value(), 100 * interval.low, 100 * interval.high);
  return text;
}

OrderedJson rate_json(const Rate& rate) {
  const Interval interval = rate.interval();
  return {{"success", rate.value()},
          {"low", interval.low},
          {"high", interval.high},
          {"trials", rate.trials},
          {"tasks", rate.tasks}};
}

/// Rows of cells, columns padded to their widest.
std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line = "  ";
    for (std::size_t i = 0; i < row.size(); ++i) line += row[i] + std::string(widths[i] - row[i].size() + 3, ' ');
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

/// How many samples each task has, and how many of them are right.
struct Tally {
  int trials = 0;   ///< infrastructure failures included
  int samples = 0;  ///< without them
  int successes = 0;
};

std::map<int, double> mean_pass_at(const std::vector<Tally>& tasks) {
  int most = 0;
  for (const Tally& task : tasks) most = std::max(most, task.trials);
  std::map<int, double> means;
  for (int k = 2; k < most; k *= 2) {
    std::vector<double> chances;
    for (const Tally& task : tasks)
      if (task.samples >= k) chances.push_back(pass_at(k, task.samples, task.successes));
    if (!chances.empty()) means[k] = mean(chances);
  }
  return means;
}

}  // namespace

void Rate::add_task(std::int64_t task_successes, std::int64_t task_trials) {
  if (task_trials == 0) return;
  const auto s = static_cast<double>(task_successes), n = static_cast<double>(task_trials);
  successes += task_successes;
  trials += task_trials;
  tasks += 1;
  squares += s * s;
  products += s * n;
  sizes += n * n;
}

double Rate::effective_trials() const {
  const auto least = static_cast<double>(tasks), most = static_cast<double>(trials);
  const double p = value();
  if (tasks < 2 || tasks == trials || p == 0 || p == 1) return least;
  const double between = squares - 2 * p * products + p * p * sizes;  // sum over tasks of (s - p n)^2
  const double variance = least / (least - 1) * between / (most * most);
  return variance > 0 ? std::clamp(p * (1 - p) / variance, least, most) : most;
}

Interval Rate::interval() const {
  const double effective = effective_trials();
  if (trials == 0) return wilson_interval(0, 0);
  const double share = effective / static_cast<double>(trials);
  return wilson_interval(std::min(share * static_cast<double>(successes), effective), effective);
}

double pass_at(int k, int samples, int successes) {
  CARNOT_CHECK(1 <= k && k <= samples && 0 <= successes && successes <= samples, "k of n samples");
  double none = 1;
  for (int i = 0; i < k; ++i) none *= static_cast<double>(std::max(0, samples - successes - i)) / (samples - i);
  return 1 - none;
}

std::optional<bool> majority_success(const Group& group) {
  std::vector<const Leaf*> voters;
  for (const Tree& tree : group.trees)
    for (const Leaf& leaf : tree.leaves)
      if (leaf.valid() && leaf.answer) voters.push_back(&leaf);
  std::ranges::sort(voters, {}, [](const Leaf* leaf) { return leaf->sibling; });
  std::map<std::string_view, int> votes;
  for (const Leaf* voter : voters) ++votes[*voter->answer];
  const Leaf* winner = nullptr;
  for (const Leaf* voter : voters)
    if (winner == nullptr || votes[*voter->answer] > votes[*winner->answer]) winner = voter;
  return winner == nullptr ? std::nullopt : std::optional(winner->success);
}

Evaluation summarize(const std::vector<Group>& groups, const std::string& breakdown) {
  Evaluation out;
  std::map<std::string, std::pair<double, std::int64_t>> measures;
  std::int64_t solved_tasks = 0, voting_tasks = 0, majority_tasks = 0, sampled_tokens = 0, entropy_tokens = 0,
               turns = 0;
  double entropy = 0;
  std::vector<Tally> tallies;
  for (const Group& group : groups) {
    Tally tally;
    for (std::size_t t = 0; t < group.trees.size(); ++t) {
      for (std::size_t i = 0; i < group.trees[t].leaves.size(); ++i) {
        const Trajectory view = trajectory(group, 0, static_cast<int>(t), static_cast<int>(i));
        const Leaf& leaf = view.leaf();
        ++tally.trials;
        if (!leaf.valid()) {
          ++out.infra_failures;
          continue;
        }
        ++tally.samples;
        tally.successes += leaf.success ? 1 : 0;
        for (const auto& [name, value] : leaf.measures) {
          measures[name].first += value;
          measures[name].second += 1;
        }
        out.mean_score += leaf.score;
        sampled_tokens += view.num_sampled();
        turns += view.num_turns();
        if (!view.tree->columns.has(Column::EntropyRollout)) continue;
        for (double h : view.column(Column::EntropyRollout)) {
          if (std::isnan(h)) continue;
          entropy += h;
          ++entropy_tokens;
        }
      }
    }
    out.success.add_task(tally.successes, tally.samples);
    if (const auto info = group.info.find(breakdown); info != group.info.end() && tally.samples > 0)
      out.by_group[info->second].add_task(tally.successes, tally.samples);
    tallies.push_back(tally);
    solved_tasks += tally.successes > 0 ? 1 : 0;
    const auto majority = majority_success(group);
    voting_tasks += majority ? 1 : 0;
    majority_tasks += majority.value_or(false) ? 1 : 0;
  }
  const double trajectories = static_cast<double>(std::max<std::int64_t>(1, out.success.trials));
  for (const auto& [name, sum] : measures) out.measures[name] = sum.first / static_cast<double>(sum.second);
  out.mean_score /= trajectories;
  out.response_length = static_cast<double>(sampled_tokens) / trajectories;
  out.turns = static_cast<double>(turns) / trajectories;
  out.entropy = entropy / static_cast<double>(std::max<std::int64_t>(1, entropy_tokens));
  const double tasks = static_cast<double>(std::max<std::int64_t>(1, out.success.tasks));
  out.best_of_samples = static_cast<double>(solved_tasks) / tasks;
  out.pass_at = mean_pass_at(tallies);
  if (voting_tasks > 0) out.majority = static_cast<double>(majority_tasks) / tasks;
  return out;
}

std::int64_t num_evaluated_tasks(const EvaluationOptions& options, const EnvironmentFactory& environment) {
  const std::int64_t there = environment.num_validation_tasks();
  return there > 0 ? std::min<std::int64_t>(options.tasks, there) : options.tasks;
}

void note_few_tasks(const Recipe& recipe) {
  const std::int64_t tasks = num_evaluated_tasks(recipe.evaluation, *recipe.environment);
  if (tasks < recipe.evaluation.tasks)
    log_info("there are " + std::to_string(tasks) +
             " validation tasks; each is evaluated once (eval.tasks=" + std::to_string(recipe.evaluation.tasks) +
             ", eval.samples=" + std::to_string(recipe.evaluation.samples) + ")");
}

std::optional<EvaluatedGroups> evaluate(const EvaluationSetting& setting, const RolloutEvents& events) {
  const EvaluationOptions& options = setting.options;
  std::vector<RolloutTask> tasks;
  for (std::int64_t i = 0; i < num_evaluated_tasks(options, setting.environment); ++i)
    tasks.push_back({.uid = "validation_" + std::to_string(i),
                     .environment = setting.environment_name,
                     .task_index = i,
                     .make = [&made_by = setting.environment, i] { return made_by.make(Split::Validation, i); }});
  RolloutOptions rollout_options = setting.rollout;
  rollout_options.group_size = options.samples;
  rollout_options.sampling = {.temperature = options.temperature, .top_p = options.top_p};
  const auto policy = independent();
  Rollout rollout =
      roll_out_together(setting.group, setting.engine, setting.chat, *policy, tasks, rollout_options,
                        {.seed = derive_seed(setting.seed, "evaluation")}, events, "the evaluation's rollouts");
  if (rollout.stopped) return std::nullopt;
  EvaluatedGroups out{.evaluation = summarize(rollout.groups, options.breakdown)};
  out.evaluation.seconds = rollout.metrics.seconds;
  out.groups = std::move(rollout.groups);
  out.failures = std::move(rollout.failures);
  return out;
}

std::string evaluation_json(const Evaluation& e) {
  OrderedJson json = rate_json(e.success);
  OrderedJson by_group = OrderedJson::object();
  for (const auto& [name, rate] : e.by_group) by_group[name] = rate_json(rate);
  json["by_group"] = by_group;
  json["measures"] = e.measures;
  json["mean_score"] = e.mean_score;
  json["response_length"] = e.response_length;
  json["turns"] = e.turns;
  json["entropy"] = e.entropy;
  json["best_of_samples"] = e.best_of_samples;
  for (const auto& [k, chance] : e.pass_at) json["pass_at"][std::to_string(k)] = chance;
  if (e.majority) json["majority"] = *e.majority;
  json["infra_failures"] = e.infra_failures;
  json["seconds"] = e.seconds;
  if (e.cost) {
    json["requests"] = e.cost->requests;
    json["prompt_tokens"] = e.cost->prompt_tokens;
    json["completion_tokens"] = e.cost->completion_tokens;
  }
  return json.dump();
}

std::map<std::string, double> evaluation_metrics(const Evaluation& e, const std::string& environment, int samples) {
  const std::string prefix = "val-core/" + environment + "/";
  const std::string n = std::to_string(samples);
  std::map<std::string, double> metrics{{prefix + "success/mean@" + n, e.success.value()},
                                        {prefix + "score/mean@" + n, e.mean_score},
                                        {prefix + "success/best@" + n, e.best_of_samples}};
  for (const auto& [k, chance] : e.pass_at) metrics[prefix + "success/pass@" + std::to_string(k)] = chance;
  if (e.majority) metrics[prefix + "success/maj@" + n] = *e.majority;
  for (const auto& [name, rate] : e.by_group) metrics[prefix + "success_" + name + "/mean@" + n] = rate.value();
  for (const auto& [name, value] : e.measures) metrics["val-aux/" + environment + "/" + name + "/mean@" + n] = value;
  metrics["val-aux/" + environment + "/response_length/mean"] = e.response_length;
  metrics["val-aux/" + environment + "/entropy"] = e.entropy;
  metrics["val-aux/" + environment + "/trajectories"] = static_cast<double>(e.success.trials);
  metrics["val-aux/" + environment + "/infra_failures"] = static_cast<double>(e.infra_failures);
  return metrics;
}

namespace {

using NamedEvaluations = std::span<const std::pair<std::string, Evaluation>>;

std::string table_of(NamedEvaluations columns, const std::string& breakdown) {
  std::vector<std::vector<std::string>> rows{{""}};
  const auto row = [&](const std::string& title, const std::function<std::string(const Evaluation&)>& cell) {
    std::vector<std::string> cells{title};
    for (const auto& column : columns) cells.push_back(cell(column.second));
    rows.push_back(cells);
  };
  std::set<std::string> group_names, measure_names;
  std::set<int> pass_at;
  for (const auto& [name, e] : columns) {
    rows[0].push_back(name);
    for (const auto& entry : e.by_group) group_names.insert(entry.first);
    for (const auto& entry : e.measures) measure_names.insert(entry.first);
    for (const auto& entry : e.pass_at) pass_at.insert(entry.first);
  }
  row("success [95 % interval]", [](const Evaluation& e) { return with_interval(e.success); });
  for (const std::string& name : group_names)
    row("  " + breakdown + " " + name, [&](const Evaluation& e) {
      const auto found = e.by_group.find(name);
      return found == e.by_group.end() ? "-" : with_interval(found->second);
    });
  for (const std::string& name : measure_names)
    row(name + ", mean", [&](const Evaluation& e) {
      const auto found = e.measures.find(name);
      return found == e.measures.end() ? "-" : number(found->second);
    });
  for (const int k : pass_at)
    row("solved by any of " + std::to_string(k), [&](const Evaluation& e) {
      const auto found = e.pass_at.find(k);
      return found == e.pass_at.end() ? "-" : percent(found->second);
    });
  row("solved by any sample", [](const Evaluation& e) { return percent(e.best_of_samples); });
  if (std::ranges::any_of(columns, [](const auto& column) { return column.second.majority.has_value(); }))
    row("solved by the majority", [](const Evaluation& e) { return e.majority ? percent(*e.majority) : "-"; });
  row("response length, tokens", [](const Evaluation& e) { return number(e.response_length, "%.1f"); });
  row("turns", [](const Evaluation& e) { return number(e.turns, "%.2f"); });
  row("entropy, nats a token", [](const Evaluation& e) { return number(e.entropy); });
  row("trajectories that count", [](const Evaluation& e) { return std::to_string(e.success.trials); });
  if (std::ranges::any_of(columns, [](const auto& column) { return column.second.cost.has_value(); })) {
    const auto cost_row = [&](const std::string& title, std::int64_t EvaluationCost::* count) {
      row(title, [count](const Evaluation& e) { return e.cost ? std::to_string((*e.cost).*count) : "-"; });
    };
    cost_row("requests", &EvaluationCost::requests);
    cost_row("prompt tokens", &EvaluationCost::prompt_tokens);
    cost_row("completion tokens", &EvaluationCost::completion_tokens);
  }
  row("infrastructure failures", [](const Evaluation& e) { return std::to_string(e.infra_failures); });
  return aligned(rows);
}

int widest_line(const std::string& text) {
  std::size_t widest = 0;
  for (const std::string_view line : split_lines(text)) widest = std::max(widest, line.size());
  return static_cast<int>(widest);
}

}  // namespace

std::string evaluation_table(const std::vector<std::pair<std::string, Evaluation>>& columns,
                             const std::string& breakdown, int width) {
  std::string table = table_of(columns, breakdown);
  if (columns.size() < 2 || widest_line(table) <= width) return table;
  table.clear();
  for (const auto& column : columns) table += (table.empty() ? "" : "\n") + table_of({&column, 1}, breakdown);
  return table;
}

}  // namespace carnot
