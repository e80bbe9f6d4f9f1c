#include "carnot/study/rollout_steps.h"

#include <algorithm>
#include <cmath>

namespace carnot {
namespace {

std::string remedy(Column column) {
  switch (column) {
    case Column::LogProbReference:
    case Column::EnergyReference:
    case Column::EntropyReference:
      return "runs with rollout.measure=[reference] write it, as do methods with a reference (grpo + actfocus)";
    case Column::Value: return "runs of methods with a critic write it (ppo)";
    case Column::LogProbCurrent: return "`carnot train` writes it, `carnot rollout` makes no update to take it from";
    default: return "`carnot train` and `carnot rollout` write it";
  }
}

/// The first sampled token without a number; -1 where there is none.
int first_unmeasured(const Trajectory& trajectory, Column column) {
  if (!trajectory.tree->columns.has(column)) return trajectory.num_sampled() > 0 ? 0 : -1;
  const std::vector<double> values = trajectory.column(column);
  for (int k = 0; k < trajectory.num_turns(); ++k)
    for (int t = trajectory.sampled_begin(k); t < trajectory.sampled_end(k); ++t)
      if (!std::isfinite(values[t])) return t;
  return -1;
}

std::vector<int> numbers_of_counting(std::span<const Trajectory> all) {
  std::vector<int> numbers;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].leaf().is_included()) numbers.push_back(static_cast<int>(i));
  return numbers;
}

Status visit_step(const StudiedRun& run, const RolloutPath& source,
                  const std::function<Status(const StudiedStep& step)>& visit) {
  const auto file = read_rollout_file(source.path);
  if (!file) return file.error();
  StudiedStep step{.run = run, .source = source, .file = *file, .all = trajectories(file->groups)};
  step.counting = numbers_of_counting(step.all);
  return visit(step);
}

std::string place(const StudiedStep& step, std::size_t trajectory) {
  return step.source.path.string() + ":" + std::to_string(step.file.line_of_row[trajectory]) + ": ";
}

}  // namespace

void StepRange::fields(FieldVisitor& visit) {
  visit.field("first_step", first, "first training step that is read", at_least(0));
  visit.field("last_step", last, "last one; 0: to the end", at_least(0));
  visit.field("every", every, "one step of so many is read, from the first", at_least(1));
}

Result<std::vector<StudiedRun>> visit_rollouts(std::span<const std::filesystem::path> paths, const StepRange& range,
                                               const std::function<Status(const StudiedStep& step)>& visit) {
  auto runs = find_runs(paths);
  if (!runs) return runs.error();
  std::size_t read = 0;
  for (const StudiedRun& run : *runs) {
    std::int64_t number = 0;
    for (const RolloutPath& source : run.rollouts) {
      if (source.step < range.first || (range.last > 0 && source.step > range.last)) continue;
      if (number++ % range.every != 0) continue;
      if (const Status status = visit_step(run, source, visit); !status) return status.error();
      ++read;
    }
  }
  if (read == 0)
    return Error{paths.front().string() +
                 ": no rollouts to read; expected rollouts/step_N.jsonl within the steps asked for "
                 "(train.keep_rollouts=true writes them)"};
  return runs;
}

Status require_columns(const StudiedStep& step, std::initializer_list<Column> columns) {
  std::vector<std::string> problems;
  for (const Column column : columns)
    for (const int i : step.counting) {
      const auto at = static_cast<std::size_t>(i);
      const int token = first_unmeasured(step.all[at], column);
      if (token < 0) continue;
      problems.push_back(place(step, at) + std::string(name_of(column)) + ": no number on the sampled token " +
                         std::to_string(token) + "; " + remedy(column));
      break;
    }
  if (!problems.empty()) return join_errors(problems);
  return Done{};
}

Status require_info_gain(const StudiedStep& step) {
  for (const Trajectory& trajectory : step.all)
    for (int k = 0; k < trajectory.num_turns(); ++k)
      if (trajectory.turn(k).info_gain) return Done{};
  return Error{step.source.path.string() +
               ": no turn has an info_gain; runs with rollout.measure=[info_gain] write it, as do igpo and a2tgpo"};
}

Status require_credit(const StudiedStep& step) {
  if (!step.file.credit.empty()) return Done{};
  return Error{step.source.path.string() + ": the rows have no advantage; `carnot train` and `carnot credit` write it"};
}

std::vector<double> sampled_values(const Trajectory& trajectory, Column column, SampledKind kind) {
  const std::vector<double> values = trajectory.column(column);
  const std::vector<bool> sampled = trajectory.sampled();
  const std::vector<SpanKind> kinds = trajectory.kinds();
  std::vector<double> out;
  for (std::size_t t = 0; t < values.size(); ++t) {
    const bool action = kinds[t] == SpanKind::Action;
    if (sampled[t] && (kind == SampledKind::Any || (kind == SampledKind::Action) == action)) out.push_back(values[t]);
  }
  return out;
}

}  // namespace carnot
