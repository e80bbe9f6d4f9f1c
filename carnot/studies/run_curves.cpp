#include "carnot/studies/run_curves.h"

#include <algorithm>
#include <cmath>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/run/run_folder.h"

namespace carnot {

double success_after(const std::filesystem::path& folder) {
  const auto text = read_file(folder / "summary.json");
  const auto parsed = text ? parse_json(*text, "summary.json") : Result<Json>(text.error());
  const Json summary = parsed ? *parsed : Json();
  const auto place = Json::json_pointer("/after/success");
  return summary.is_object() && summary.contains(place) && summary[place].is_number() ? summary[place].get<double>()
                                                                                      : std::nan("");
}

Result<std::vector<RunCurves>> read_curves(std::span<const std::filesystem::path> paths) {
  CARNOT_ASSIGN_OR_RETURN(auto found, find_runs(paths));
  std::vector<RunCurves> runs;
  for (StudiedRun& run : found) {
    const std::filesystem::path metrics = RunFolder{run.folder}.metrics();
    if (!std::filesystem::exists(metrics)) continue;
    CARNOT_ASSIGN_OR_RETURN(auto read, read_metric_curves(metrics));
    RunCurves curves{.run = std::move(run), .metrics = std::move(read)};
    curves.success_after = carnot::success_after(curves.run.folder);
    if (curves.metrics.contains(curves.success())) runs.push_back(std::move(curves));
  }
  if (!runs.empty()) return runs;
  return Error{paths.front().string() +
               ": no run with training steps; expected metrics.jsonl of `carnot train` or `carnot compare`"};
}

std::vector<Curve> LabelledRuns::curves(const std::string& metric) const {
  std::vector<Curve> out;
  for (const RunCurves& run : runs) {
    const auto found = run.metrics.find(metric);
    out.push_back(found == run.metrics.end() ? Curve() : found->second);
  }
  return out;
}

std::vector<Curve> LabelledRuns::success_curves() const {
  std::vector<Curve> out;
  for (const RunCurves& run : runs) out.push_back(run.metrics.at(run.success()));
  return out;
}

std::vector<double> LabelledRuns::final_success() const {
  std::vector<double> out;
  for (const RunCurves& run : runs)
    out.push_back(std::isfinite(run.success_after) ? run.success_after
                                                   : mean_between(run.metrics.at(run.success()), 0.9, 1));
  return out;
}

std::vector<LabelledRuns> by_label(std::vector<RunCurves> runs) {
  std::vector<LabelledRuns> out;
  for (RunCurves& run : runs) {
    auto place = std::find_if(out.begin(), out.end(), [&](const auto& one) { return one.label == run.run.label; });
    if (place == out.end()) place = out.insert(out.end(), {.label = run.run.label});
    place->runs.push_back(std::move(run));
  }
  return out;
}

void CurveAnalysis::fields(FieldVisitor& visit) {
  visit.field("window", window_, "steps that curves are smoothed over", at_least(1));
}

Result<AnalysisReport> CurveAnalysis::run(const AnalysisInput& input) {
  CARNOT_ASSIGN_OR_RETURN(auto runs, read_curves(input.paths));
  AnalysisReport report = begin();
  add(by_label(std::move(runs)), report);
  return report;
}

}  // namespace carnot
