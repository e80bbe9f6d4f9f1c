#include "carnot/study/comparison_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "carnot/base/file.h"
#include "carnot/chart/interval_chart.h"
#include "carnot/chart/page.h"
#include "carnot/chart/plot.h"
#include "carnot/train/progress.h"

namespace carnot {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostBands = 6;  ///< more of them hide each other

std::string formatted(const char* format, double a, double b = 0, double c = 0) {
  char text[96];
  std::snprintf(text, sizeof text, format, a, b, c);
  return text;
}

/// "64.8 % ± 3.1", or without an interval "64.8 %".
std::string share_text(const Estimate& e) {
  if (e.count == 0) return "-";
  if (!e.interval) return formatted("%.1f %%", 100 * e.mean);
  return formatted("%.1f %% ± %.1f", 100 * e.mean, 100 * (e.interval->high - e.mean));
}

std::string difference_text(const Estimate& e) {
  if (e.count == 0) return "-";
  if (!e.interval) return formatted("%+.1f", 100 * e.mean);
  return formatted("%+.1f [%+.1f, %+.1f]", 100 * e.mean, 100 * e.interval->low, 100 * e.interval->high);
}

std::string reading_of(const Estimate& e) {
  if (e.count == 0) return "-";
  if (!e.interval) return "one seed";
  return e.excludes_zero() ? "excludes 0" : "contains 0";
}

std::string mean_text(const ContestantResult& contestant, double ContestRun::* value, const char* format) {
  const Estimate estimate = estimate_of(contestant.by_seed(value));
  return estimate.count == 0 ? "-" : formatted(format, estimate.mean);
}

std::string time_text(const ContestantResult& contestant) {
  const Estimate estimate = estimate_of(contestant.by_seed(&ContestRun::seconds));
  return estimate.count == 0 ? "-" : clock_time(estimate.mean);
}

Json estimate_json(const Estimate& e) {
  if (e.count == 0) return nullptr;
  Json json{{"seeds", e.count}, {"mean", e.mean}};
  if (e.interval) json.update({{"low", e.interval->low}, {"high", e.interval->high}});
  return json;
}

Json run_json(const ContestRun& run) {
  Json json{{"seed", run.seed}, {"folder", run.folder}, {"finished", run.finished}};
  if (!run.problem.empty()) json["problem"] = run.problem;
  if (!run.finished) return json;
  json.update({{"before", run.before},
               {"after", run.after},
               {"response_length", run.response_length},
               {"entropy", run.entropy},
               {"turns", run.turns},
               {"sampled_tokens", run.sampled_tokens}});
  return json;
}

Json contestant_json(const Comparison& comparison, std::size_t index) {
  const ContestantResult& contestant = comparison.contestants[index];
  Json json{{"method", contestant.name},
            {"before", estimate_json(estimate_of(contestant.by_seed(&ContestRun::before)))},
            {"after", estimate_json(estimate_of(contestant.by_seed(&ContestRun::after)))}};
  if (index != comparison.base) json["difference"] = estimate_json(comparison.difference(index, &ContestRun::after));
  json["runs"] = Json::array();
  for (const ContestRun& run : contestant.runs) json["runs"].push_back(run_json(run));
  return json;
}

std::size_t num_finished(const Comparison& comparison) {
  std::size_t count = 0;
  for (const ContestantResult& contestant : comparison.contestants)
    count += static_cast<std::size_t>(std::count_if(contestant.runs.begin(), contestant.runs.end(), [](const ContestRun& run) { return run.finished; }));
  return count;
}

std::size_t num_seeds(const Comparison& comparison) { return comparison.contestants.front().runs.size(); }

std::string introduction(const Comparison& comparison) {
  const std::size_t all = comparison.contestants.size() * num_seeds(comparison);
  return comparison.recipe + ", " + comparison.environment + ": " + std::to_string(comparison.training_steps) + " training steps of " +
         std::to_string(comparison.trajectories) + " trajectories; " + std::to_string(num_finished(comparison)) + " of " +
         std::to_string(all) + " runs finished. For each seed all methods start from one policy.";
}

/// How to read the table.
std::vector<std::string> explanations(const Comparison& comparison) {
  const std::string base = comparison.contestants[comparison.base].name;
  std::vector<std::string> lines = {
      "before, after: success on " + std::to_string(comparison.validation_tasks) + " validation tasks (" +
          std::to_string(comparison.evaluation_samples) + (comparison.evaluation_samples == 1 ? " trajectory" : " trajectories") + " a task), mean over seeds ± half the width of its 95 % interval.",
      "difference: success after training minus that of " + base + " with the same seed, in percentage points, mean over seeds with its 95 % interval.",
      "All intervals are Student's t over seeds; one seed has none. \"contains 0\": the seeds do not tell the method from " + base +
          ". Of twenty intervals of methods that are all alike, about one excludes 0.",
      "response, entropy: sampled tokens of a trajectory, nats a token, both on the validation tasks after training. tokens: sampled by all training steps of "
      "a run. time: of a run's training steps; it depends on the machine and its load."};
  return lines;
}

std::vector<std::string> unfinished(const Comparison& comparison) {
  std::vector<std::string> lines;
  for (const ContestantResult& contestant : comparison.contestants)
    for (const ContestRun& run : contestant.runs)
      if (!run.finished) lines.push_back(run.folder + ": " + (run.problem.empty() ? "not finished" : run.problem));
  return lines;
}

struct Section {
  std::string title{};
  std::vector<std::string> lines{};
};

/// What stands below the table; empty sections are left out.
std::vector<Section> remarks(const Comparison& comparison) {
  std::vector<std::string> left_out;
  for (const LeftOut& left : comparison.left_out) left_out.push_back(left.name + ": " + left.reason);
  std::vector<Section> all = {{"How to read it", explanations(comparison)},
                              {"Runs that are not finished", unfinished(comparison)},
                              {"Methods left out", left_out},
                              {"Where the recipe replaces what a method asks for", comparison.notes}};
  std::erase_if(all, [](const Section& section) { return section.lines.empty(); });
  return all;
}

/// The mean curve of every contestant that has finished runs.
std::string curves_svg(const Comparison& comparison, const std::string& metric, Plot plot, int window) {
  const bool has_bands = comparison.contestants.size() <= kMostBands;
  for (std::size_t c = 0; c < comparison.contestants.size(); ++c) {
    std::vector<Curve> curves;
    for (const ContestRun& run : comparison.contestants[c].runs)
      if (const auto found = run.curves.find(metric); run.finished && found != run.curves.end()) curves.push_back(found->second);
    MeanCurve mean = mean_curve(curves, window);
    if (mean.step.empty()) continue;
    Series series{.name = comparison.contestants[c].name, .x = mean.step, .y = mean.mean, .colour = static_cast<int>(c)};
    if (has_bands) {
      series.low = mean.low;
      series.high = mean.high;
    }
    plot.series.push_back(std::move(series));
  }
  plot.size = {.width = 820, .height = std::max(360.0, 70 + 19.0 * static_cast<double>(plot.series.size()))};
  return svg(plot);
}

std::string differences_svg(const Comparison& comparison) {
  const std::string base = comparison.contestants[comparison.base].name;
  IntervalChart chart{.title = "Success after training, difference to " + base,
                      .x = {.label = "percentage points"},
                      .mark = 0,
                      .width = 820};
  for (std::size_t c = 0; c < comparison.contestants.size(); ++c) {
    if (c == comparison.base) continue;
    const Estimate e = comparison.difference(c, &ContestRun::after);
    IntervalRow row{.name = comparison.contestants[c].name, .value = e.count > 0 ? 100 * e.mean : std::nan(""), .emphasized = e.excludes_zero()};
    if (e.interval) row.interval = Extent{100 * e.interval->low, 100 * e.interval->high};
    const BySeed own = comparison.contestants[c].by_seed(&ContestRun::after), others = comparison.contestants[comparison.base].by_seed(&ContestRun::after);
    for (const auto& [seed, value] : own)
      if (others.contains(seed)) row.single.push_back(100 * (value - others.at(seed)));
    chart.rows.push_back(std::move(row));
  }
  return svg(chart);
}

Table seeds_table(const Comparison& comparison) {
  Table table{.columns = {"method"}};
  for (const ContestRun& run : comparison.contestants.front().runs) table.columns.push_back("seed " + std::to_string(run.seed));
  const auto add = [&](const std::string& name, const ContestantResult& contestant, double ContestRun::* value) {
    std::vector<std::string> row{name};
    for (const ContestRun& run : contestant.runs) row.push_back(run.finished ? formatted("%.1f %%", 100 * (run.*value)) : "-");
    table.rows.push_back(std::move(row));
  };
  add("(before)", comparison.contestants[comparison.base], &ContestRun::before);
  for (const ContestantResult& contestant : comparison.contestants) add(contestant.name, contestant, &ContestRun::after);
  return table;
}

/// Steps over which single noisy steps are averaged: a twentieth of the run.
int smoothing_window(const Comparison& comparison) { return static_cast<int>(std::max<std::int64_t>(1, comparison.training_steps / 20)); }

void add_curves(Page& page, const Comparison& comparison) {
  const int window = smoothing_window(comparison);
  const std::string how = "Mean over seeds" + (window > 1 ? ", each step averaged with its neighbours over " + std::to_string(window) + " steps" : "") +
                          (comparison.contestants.size() <= kMostBands && num_seeds(comparison) > 1 ? "; bands are 95 % intervals of the mean." : ".");
  const Axis steps{.label = "training step"};
  const ShownMetrics shown = ShownMetrics::in(comparison.environment, comparison.evaluation_samples);
  page.heading("Curves");
  const bool has_validation = std::any_of(comparison.contestants.begin(), comparison.contestants.end(), [&](const ContestantResult& contestant) {
    return std::any_of(contestant.runs.begin(), contestant.runs.end(), [&](const ContestRun& run) { return run.curves.contains(shown.validation); });
  });
  if (has_validation)
    page.figure(curves_svg(comparison, shown.validation, {.title = "Success on validation tasks", .x = steps, .y = {.label = "success", .percent = true}}, 1),
                "Mean over seeds of the evaluations.");
  page.figure(curves_svg(comparison, shown.success, {.title = "Success on training tasks", .x = steps, .y = {.label = "success", .percent = true}}, window), how);
  page.figure(curves_svg(comparison, shown.entropy, {.title = "Entropy of the policy", .x = steps, .y = {.label = "nats a token"}}, window), how);
  page.figure(curves_svg(comparison, shown.response_length, {.title = "Response length", .x = steps, .y = {.label = "sampled tokens a trajectory"}}, window), how);
}

}  // namespace

std::string comparison_json(const Comparison& comparison) {
  Json json{{"recipe", comparison.recipe},
            {"environment", comparison.environment},
            {"training_steps", comparison.training_steps},
            {"trajectories_a_step", comparison.trajectories},
            {"validation_tasks", comparison.validation_tasks},
            {"base", comparison.contestants[comparison.base].name},
            {"methods", Json::array()},
            {"left_out", Json::array()},
            {"notes", comparison.notes}};
  for (std::size_t c = 0; c < comparison.contestants.size(); ++c) json["methods"].push_back(contestant_json(comparison, c));
  for (const LeftOut& left : comparison.left_out) json["left_out"].push_back({{"method", left.name}, {"reason", left.reason}});
  return json.dump(2) + "\n";
}

Table comparison_table(const Comparison& comparison) {
  const std::string base = comparison.contestants[comparison.base].name;
  Table table{.columns = {"method", "seeds", "before", "after", "difference to " + base, "interval", "response", "entropy", "tokens", "time"}};
  for (std::size_t c = 0; c < comparison.contestants.size(); ++c) {
    const ContestantResult& contestant = comparison.contestants[c];
    const Estimate after = estimate_of(contestant.by_seed(&ContestRun::after));
    const Estimate difference = comparison.difference(c, &ContestRun::after);
    const bool is_base = c == comparison.base;
    table.rows.push_back({contestant.name, std::to_string(after.count), share_text(estimate_of(contestant.by_seed(&ContestRun::before))),
                          share_text(after), is_base ? "(base)" : difference_text(difference), is_base ? "" : reading_of(difference),
                          mean_text(contestant, &ContestRun::response_length, "%.1f"), mean_text(contestant, &ContestRun::entropy, "%.3f"),
                          mean_text(contestant, &ContestRun::sampled_tokens, "%.0f"), time_text(contestant)});
  }
  return table;
}

std::string comparison_markdown(const Comparison& comparison) {
  std::string text = "# Comparison of methods\n\n" + introduction(comparison) + "\n\n" + markdown(comparison_table(comparison));
  for (const Section& section : remarks(comparison)) {
    text += "\n## " + section.title + "\n\n";
    for (const std::string& line : section.lines) text += "* " + line + "\n";
  }
  return text + "\n## Success after training, by seed\n\n" + markdown(seeds_table(comparison));
}

std::string comparison_html(const Comparison& comparison) {
  Page page("Comparison of methods");
  page.paragraph(introduction(comparison)).table(comparison_table(comparison));
  if (comparison.contestants.size() > 1)
    page.figure(differences_svg(comparison), "Large dots: means over seeds; small dots: seeds; grey where the interval contains 0 or there is none.");
  for (const Section& section : remarks(comparison)) page.heading(section.title).list(section.lines);
  add_curves(page, comparison);
  page.heading("Success after training, by seed").table(seeds_table(comparison));
  return page.html();
}

Status write_comparison(const Comparison& comparison, const std::filesystem::path& output) {
  if (const Status made = make_folder(output); !made) return made;
  if (const Status status = write_file_atomically(output / "comparison.json", comparison_json(comparison)); !status) return status;
  if (const Status status = write_file_atomically(output / "comparison.md", comparison_markdown(comparison)); !status) return status;
  return write_file_atomically(output / "report.html", comparison_html(comparison));
}

}  // namespace carnot
