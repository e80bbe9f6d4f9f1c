#include "carnot/studies/comparison_results.h"

#include <cmath>
#include <limits>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/run/run_folder.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

Result<Json> read_json(const fs::path& path) {
  CARNOT_ASSIGN_OR_RETURN(const auto text, read_file(path));
  return parse_json_object(text, path.string());
}

/// The number at `key`; not a number where it is null or missing.
double number_at(const Json& json, const std::string& key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<double>() : std::numeric_limits<double>::quiet_NaN();
}

double sum_of(const Curve& curve) {
  double sum = 0;
  for (const auto& [step, value] : curve) sum += value;
  return sum;
}

/// Metrics of all training steps so far.
Status read_curves(const fs::path& path, const ShownMetrics& shown, ContestRun& run) {
  if (!fs::exists(path)) return Done{};
  CARNOT_ASSIGN_OR_RETURN(auto metrics, read_metric_curves(path));
  for (const std::string& name : {shown.success, shown.entropy, shown.response_length, shown.validation})
    if (metrics.contains(name)) run.curves[name] = metrics.at(name);
  run.sampled_tokens = sum_of(metrics["rollout/sampled_tokens"]);
  run.seconds = sum_of(metrics["timing_s/step"]);
  return Done{};
}

void find_peak(const Curve& validation, ContestRun& run) {
  for (const auto& [step, success] : validation) {
    if (!std::isfinite(success) || success <= run.peak) continue;
    run.peak = success;
    run.peak_step = static_cast<double>(step);
  }
}

Result<ContestRun> read_run(const PlannedSeed& planned, const Recipe& recipe, const fs::path& output,
                            const RunProblems& problems) {
  const fs::path folder = recipe.run.run_folder;
  ContestRun run{
      .seed = planned.seed, .folder = folder.lexically_relative(output).string(), .finished = is_finished(folder)};
  if (const auto found = problems.find(folder.string()); found != problems.end()) run.problem = found->second;
  const ShownMetrics shown = ShownMetrics::in(recipe.environment_name, recipe.evaluation.samples);
  CARNOT_RETURN_IF_ERROR(read_curves(RunFolder{folder}.metrics(), shown, run));
  if (!run.finished) return run;
  CARNOT_ASSIGN_OR_RETURN(const auto start,
                          read_json(fs::path(planned.start.run.run_folder) / "validation" / "after.json"));
  CARNOT_ASSIGN_OR_RETURN(const auto summary, read_json(folder / "summary.json"));
  run.steps = number_at(summary, "training_steps");
  const Json after = summary.value("after", Json::object());
  run.before = number_at(start, "success");
  run.after = number_at(after, "success");
  run.response_length = number_at(after, "response_length");
  run.entropy = number_at(after, "entropy");
  run.turns = number_at(after, "turns");
  if (recipe.evaluation.every > 0) {
    run.curves[shown.validation][0] = run.before;
    run.curves[shown.validation][static_cast<std::int64_t>(run.steps)] = run.after;
    find_peak(run.curves[shown.validation], run);
  }
  return run;
}

}  // namespace

BySeed ContestantResult::by_seed(double ContestRun::* value) const {
  BySeed values;
  for (const ContestRun& run : runs)
    if (run.finished && std::isfinite(run.*value)) values[run.seed] = run.*value;
  return values;
}

Estimate Comparison::difference(std::size_t contestant, double ContestRun::* value) const {
  return paired_difference(contestants[contestant].by_seed(value), contestants[base].by_seed(value));
}

ShownMetrics ShownMetrics::in(const std::string& environment, std::int64_t evaluation_samples) {
  return {.success = "env/" + environment + "/success",
          .validation = "val-core/" + environment + "/success/mean@" + std::to_string(evaluation_samples)};
}

Result<Comparison> read_comparison(const ComparisonPlan& plan, const RunProblems& problems) {
  const Recipe& any = plan.seeds.front().runs.front();
  Comparison comparison{.recipe = plan.recipe,
                        .environment = any.environment_name,
                        .training_steps = any.train.steps,
                        .max_sampled_tokens = any.train.max_sampled_tokens,
                        .trajectories = any.step_trajectories(),
                        .validation_tasks = any.evaluation.tasks,
                        .evaluation_samples = any.evaluation.samples,
                        .base = plan.base,
                        .left_out = plan.left_out,
                        .notes = plan.notes};
  for (std::size_t c = 0; c < plan.contestants.size(); ++c) {
    ContestantResult result{.name = plan.contestants[c].name()};
    for (const PlannedSeed& planned : plan.seeds) {
      CARNOT_ASSIGN_OR_RETURN(auto run, read_run(planned, planned.runs[c], plan.output, problems));
      result.runs.push_back(std::move(run));
    }
    comparison.contestants.push_back(std::move(result));
  }
  return comparison;
}

}  // namespace carnot
