#include "carnot/studies/rollout_analysis.h"

#include <cmath>

namespace carnot {
namespace {

std::string remedy(Column column) {
  switch (column) {
    case Column::LogProbReference:
    case Column::EnergyReference:
    case Column::EntropyReference:
      return "runs with rollout.extra_signals=[reference] write it, as do methods with a reference (grpo + actfocus)";
    case Column::Value: return "runs of methods with a critic write it (ppo)";
    case Column::LogProbCurrent: return "`carnot train` writes it, `carnot rollout` makes no update to take it from";
    default: return "`carnot train` and `carnot rollout` write it";
  }
}

/// The first sampled token without a number; -1 if there is none.
int first_unmeasured(const Trajectory& trajectory, Column column) {
  if (!trajectory.tree->columns.has(column)) return trajectory.num_sampled() > 0 ? 0 : -1;
  const std::vector<double> values = trajectory.column(column);
  for (int k = 0; k < trajectory.num_turns(); ++k)
    for (int t = trajectory.sampled_begin(k); t < trajectory.sampled_end(k); ++t)
      if (!std::isfinite(values[t])) return t;
  return -1;
}

std::string problem_with_column(const StudiedStep& step, Column column) {
  for (const int i : step.counting) {
    const int token = first_unmeasured(step.all[i], column);
    if (token < 0) continue;
    return step.source.path.string() + ":" + std::to_string(step.file.line_of_row[i]) + ": " +
           std::string(name_of(column)) + ": no number on the sampled token " + std::to_string(token) + "; " +
           remedy(column);
  }
  return "";
}

bool has_info_gain(const StudiedStep& step) {
  for (const Trajectory& trajectory : step.all)
    for (int k = 0; k < trajectory.num_turns(); ++k)
      if (trajectory.turn(k).info_gain) return true;
  return false;
}

Status check(const StudiedStep& step, const RowNeeds& needs) {
  const std::string file = step.source.path.string();
  if (needs.info_gain && !has_info_gain(step))
    return Error{
        file +
        ": no turn has an info_gain; runs with rollout.extra_signals=[info_gain] write it, as do igpo and a2tgpo"};
  std::vector<std::string> problems;
  for (const Column column : needs.columns)
    if (std::string problem = problem_with_column(step, column); !problem.empty()) problems.push_back(problem);
  if (needs.credit && step.file.credit.empty())
    problems.push_back(file + ": the rows have no advantage; `carnot train` and `carnot credit` write it");
  if (!problems.empty()) return join_errors(problems);
  return Done{};
}

}  // namespace

void RolloutAnalysis::fields(FieldVisitor& visit) {
  visit.field("first_step", first_step_, "first training step that is read", at_least(0));
  visit.field("last_step", last_step_, "last one; 0: to the end", at_least(0));
  visit.field("every", every_, "one step of so many is read, from the first", at_least(1));
  options(visit);
}

Status RolloutAnalysis::visit(const StudiedRun& run, const RolloutPath& source) {
  CARNOT_ASSIGN_OR_RETURN(const auto file, read_rollout_file(source.path));
  StudiedStep step{.run = run, .source = source, .file = file, .all = trajectories(file.groups)};
  for (std::size_t i = 0; i < step.all.size(); ++i)
    if (step.all[i].leaf().is_included()) step.counting.push_back(static_cast<int>(i));
  CARNOT_RETURN_IF_ERROR(check(step, needs_));
  add(step);
  return Done{};
}

Result<AnalysisReport> RolloutAnalysis::run(const AnalysisInput& input) {
  CARNOT_ASSIGN_OR_RETURN(const auto runs, find_runs(input.paths));
  bool has_read = false;
  for (const StudiedRun& run : runs) {
    std::int64_t number = 0;
    for (const RolloutPath& source : run.rollouts) {
      if (source.step < first_step_ || (last_step_ > 0 && source.step > last_step_)) continue;
      if (number++ % every_ != 0) continue;
      CARNOT_RETURN_IF_ERROR(visit(run, source));
      has_read = true;
    }
  }
  if (!has_read)
    return Error{input.paths.front().string() +
                 ": no rollouts to read; expected rollouts/step_N.jsonl within the steps asked for "
                 "(train.keep_rollouts=true writes them)"};
  labels_ = labels_of(runs);
  return report(input);
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
