#include "carnot/studies/comparison_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/run/progress.h"
#include "carnot/studies/comparison_results.h"
#include "carnot/studies/mean_curve.h"
#include "carnot/view/chart/json.h"
#include "carnot/view/chart/page.h"
#include "carnot/view/chart/table.h"

namespace carnot {
namespace {

// What the Markdown file and the page both say.

struct Section {
  std::string title{};
  std::vector<std::string> lines{};
};

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
  if (!e.interval) return "too few seeds";
  if (e.interval->low == e.interval->high && e.mean != 0) return "no spread";
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

std::size_t num_finished(const Comparison& comparison) {
  std::size_t count = 0;
  for (const ContestantResult& contestant : comparison.contestants)
    count += static_cast<std::size_t>(std::count_if(contestant.runs.begin(), contestant.runs.end(),
                                                    [](const ContestRun& run) { return run.finished; }));
  return count;
}

/// How to read the table.
std::vector<std::string> explanations(const Comparison& comparison) {
  const std::string base = comparison.contestants[comparison.base].name;
  const std::string samples = std::to_string(comparison.evaluation_samples) +
                              (comparison.evaluation_samples == 1 ? " trajectory" : " trajectories");
  return {"before, after: success on " + std::to_string(comparison.validation_tasks) + " validation tasks (" + samples +
              " per task), mean over seeds ± half the width of its 95 % interval.",
          "difference: success after training minus that of " + base +
              " with the same seed, in percentage points, mean over seeds with its 95 % interval.",
          "All intervals are Student's t over seeds; fewer than three seeds have none, and no verdict. \"contains 0\": "
          "the seeds do not tell the method from " +
              base +
              ". \"no spread\": all differences are equal, which tells nothing of their spread. Of twenty intervals of "
              "methods that are all alike, about one excludes 0.",
          "response, entropy: sampled tokens of a trajectory, nats per token, both on the validation tasks after "
          "training. tokens: sampled by all training steps of "
          "a run. time: of a run's training steps; it depends on the machine and its load."};
}

/// Failed runs one by one, those to come by method.
std::vector<std::string> unfinished(const Comparison& comparison) {
  std::vector<std::string> lines;
  for (const ContestantResult& contestant : comparison.contestants) {
    std::string seeds;
    for (const ContestRun& run : contestant.runs) {
      if (run.finished) continue;
      if (run.problem.empty()) {
        seeds += (seeds.empty() ? ": seed " : ", ") + std::to_string(run.seed);
      } else {
        lines.push_back(run.folder + ": " + run.problem);
      }
    }
    if (!seeds.empty()) lines.push_back(contestant.name + seeds);
  }
  return lines;
}

/// What was compared, and how much of it is finished.
std::string introduction(const Comparison& comparison) {
  const std::size_t all = comparison.contestants.size() * comparison.contestants.front().runs.size();
  const std::int64_t tokens = comparison.max_sampled_tokens;
  return comparison.recipe + ", " + comparison.environment + ": " + (tokens > 0 ? "at most " : "") +
         std::to_string(comparison.training_steps) + " training steps of " + std::to_string(comparison.trajectories) +
         " trajectories" + (tokens > 0 ? ", ending once " + std::to_string(tokens) + " tokens are sampled; " : "; ") +
         std::to_string(num_finished(comparison)) + " of " + std::to_string(all) +
         " runs finished. For each seed all methods start from one policy.";
}

/// A row per method: means over seeds with their intervals, and the paired difference to the base.
Table comparison_table(const Comparison& comparison) {
  const std::string base = comparison.contestants[comparison.base].name;
  Table table{.columns = {"method", "seeds", "before", "after", "difference to " + base, "interval", "response",
                          "entropy", "tokens", "time"}};
  for (std::size_t c = 0; c < comparison.contestants.size(); ++c) {
    const ContestantResult& contestant = comparison.contestants[c];
    const Estimate after = estimate_of(contestant.by_seed(&ContestRun::after));
    const Estimate difference = comparison.difference(c, &ContestRun::after);
    const bool is_base = c == comparison.base;
    table.add(contestant.name, std::to_string(after.count),
              share_text(estimate_of(contestant.by_seed(&ContestRun::before))), share_text(after),
              is_base ? "(base)" : difference_text(difference), is_base ? "" : reading_of(difference),
              mean_text(contestant, &ContestRun::response_length, "%.1f"),
              mean_text(contestant, &ContestRun::entropy, "%.3f"),
              mean_text(contestant, &ContestRun::sampled_tokens, "%.0f"), time_text(contestant));
  }
  return table;
}

/// Success after training, a column per seed.
Table seeds_table(const Comparison& comparison) {
  Table table{.name = "Success after training, by seed", .columns = {"method"}};
  for (const ContestRun& run : comparison.contestants.front().runs)
    table.columns.push_back("seed " + std::to_string(run.seed));
  const auto add = [&](const std::string& name, const ContestantResult& contestant, double ContestRun::* value) {
    std::vector<Cell> row{name};
    for (const ContestRun& run : contestant.runs)
      row.emplace_back(run.finished ? formatted("%.1f %%", 100 * (run.*value)) : "-");
    table.add_row(std::move(row));
  };
  add("(before)", comparison.contestants[comparison.base], &ContestRun::before);
  for (const ContestantResult& contestant : comparison.contestants)
    add(contestant.name, contestant, &ContestRun::after);
  return table;
}

/// True if runs were evaluated while they trained.
bool has_peaks(const Comparison& comparison) {
  for (const ContestantResult& contestant : comparison.contestants)
    for (const ContestRun& run : contestant.runs)
      if (run.finished && std::isfinite(run.peak)) return true;
  return false;
}

/// The best evaluation of each run next to its last one. REQUIRES has_peaks().
Table peak_table(const Comparison& comparison) {
  Table table{.name = "Peak against final success",
              .columns = {"method", "seeds", "peak", "final", "final minus peak", "step of the peak"}};
  for (const ContestantResult& contestant : comparison.contestants) {
    const BySeed peak = contestant.by_seed(&ContestRun::peak), after = contestant.by_seed(&ContestRun::after);
    table.add(contestant.name, std::to_string(peak.size()), share_text(estimate_of(peak)),
              share_text(estimate_of(after)), difference_text(paired_difference(after, peak)),
              mean_text(contestant, &ContestRun::peak_step, "%.1f"));
  }
  return table;
}

/// How to read that table.
std::string peak_note() {
  return "peak: the best evaluation of a run, from before training to its end (eval.every); step: mean over seeds. The "
         "best of several evaluations is high by chance as well: it lies above the final figure even where nothing is "
         "lost.";
}

/// The text below the table: how to read it, what is missing, and what a reader must know. Without empty sections.
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

// The page.

/// What one kind of curve shows.
struct CurveKind {
  std::string metric{};
  std::string title{};
  Axis y{};
  int window = 1;
};

std::vector<Curve> curves_of(const ContestantResult& contestant, const std::string& metric) {
  std::vector<Curve> curves;
  for (const ContestRun& run : contestant.runs)
    if (const auto found = run.curves.find(metric); run.finished && found != run.curves.end())
      curves.push_back(found->second);
  return curves;
}

void add_curves(const Comparison& comparison, const CurveKind& kind, std::vector<Table>& tables,
                std::vector<Figure>& figures) {
  Table table = curve_table(kind.title, "method");
  for (const ContestantResult& contestant : comparison.contestants)
    add_curve(table, contestant.name, mean_curve(curves_of(contestant, kind.metric), kind.window));
  if (table.rows.empty()) return;
  Figure figure = curve_figure(table, kind.title, kind.y);
  figure.base = comparison.contestants[comparison.base].name;
  figure.caption = "Mean over seeds; bands are 95 % intervals of the mean, of three or more.";
  if (kind.window > 1)
    figure.caption += " Each step is averaged with its neighbours over " + std::to_string(kind.window) + " steps.";
  figures.push_back(std::move(figure));
  tables.push_back(std::move(table));
}

/// Differences to the base in percentage points: means with their intervals, and those of single seeds.
void add_differences(const Comparison& comparison, std::vector<Table>& tables, std::vector<Figure>& figures) {
  const ContestantResult& base = comparison.contestants[comparison.base];
  Table means{.name = "differences to " + base.name, .columns = {"method", "difference", "low", "high"}};
  Table single{.name = "differences by seed", .columns = {"method", "seed", "difference"}};
  const BySeed others = base.by_seed(&ContestRun::after);
  for (std::size_t c = 0; c < comparison.contestants.size(); ++c) {
    const ContestantResult& contestant = comparison.contestants[c];
    const Estimate e = comparison.difference(c, &ContestRun::after);
    if (c == comparison.base || e.count == 0) continue;
    const Interval interval = e.interval.value_or(Interval{std::nan(""), std::nan("")});
    means.add(contestant.name, 100 * e.mean, 100 * interval.low, 100 * interval.high);
    for (const auto& [seed, value] : contestant.by_seed(&ContestRun::after))
      if (others.contains(seed)) single.add(contestant.name, seed, 100 * (value - others.at(seed)));
  }
  if (means.rows.empty()) return;
  figures.push_back(
      {.title = "Success after training, difference to " + base.name,
       .caption =
           "Large dots: means over seeds; small dots: seeds; grey where the interval contains 0 or there is none.",
       .table = means.name,
       .draw = Draw::Intervals,
       .x = "method",
       .y = {"difference"},
       .low = "low",
       .high = "high",
       .y_axis = {.label = "percentage points", .low = -100, .high = 100},
       .mark = 0,
       .dots = single.name});
  tables.insert(tables.end(), {std::move(means), std::move(single)});
}

// The files.

OrderedJson estimate_json(const Estimate& e) {
  if (e.count == 0) return nullptr;
  OrderedJson json{{"seeds", e.count}, {"mean", e.mean}};
  if (e.interval) json.update({{"low", e.interval->low}, {"high", e.interval->high}});
  return json;
}

OrderedJson run_json(const ContestRun& run) {
  OrderedJson json{{"seed", run.seed}, {"folder", run.folder}, {"finished", run.finished}};
  if (!run.problem.empty()) json["problem"] = run.problem;
  if (!run.finished) return json;
  json.update({{"before", run.before},
               {"after", run.after},
               {"response_length", run.response_length},
               {"entropy", run.entropy},
               {"turns", run.turns},
               {"training_steps", run.steps},
               {"sampled_tokens", run.sampled_tokens}});
  if (std::isfinite(run.peak)) json.update({{"peak", run.peak}, {"peak_step", run.peak_step}});
  return json;
}

OrderedJson contestant_json(const Comparison& comparison, std::size_t index) {
  const ContestantResult& contestant = comparison.contestants[index];
  OrderedJson json{{"method", contestant.name},
                   {"before", estimate_json(estimate_of(contestant.by_seed(&ContestRun::before)))},
                   {"after", estimate_json(estimate_of(contestant.by_seed(&ContestRun::after)))}};
  if (index != comparison.base) json["difference"] = estimate_json(comparison.difference(index, &ContestRun::after));
  json["runs"] = OrderedJson::array();
  for (const ContestRun& run : contestant.runs) json["runs"].push_back(run_json(run));
  return json;
}

std::string titled(const Table& table) { return "\n## " + table.name + "\n\n" + markdown(table); }

}  // namespace

std::string comparison_html(const Comparison& comparison) {
  const ShownMetrics shown = ShownMetrics::in(comparison.environment, comparison.evaluation_samples);
  // Single noisy steps are averaged over a tenth of the run.
  const int window = static_cast<int>(std::max<std::int64_t>(1, comparison.training_steps / 10));
  std::vector<Table> tables{seeds_table(comparison)};
  std::vector<Figure> figures;
  if (has_peaks(comparison)) tables.push_back(peak_table(comparison));
  add_differences(comparison, tables, figures);
  for (const CurveKind& kind :
       {CurveKind{shown.validation, "Success on validation tasks", share_axis("success")},
        CurveKind{shown.success, "Success on training tasks", share_axis("success"), window},
        CurveKind{shown.entropy, "Entropy of the policy", {.label = "nats per token", .low = 0}, window},
        CurveKind{
            shown.response_length, "Response length", {.label = "sampled tokens per trajectory", .low = 0}, window}})
    add_curves(comparison, kind, tables, figures);
  OrderedJson json{{"title", "Comparison of methods"},
                   {"introduction", introduction(comparison)},
                   {"findings", rows_json(comparison_table(comparison))},
                   {"sections", OrderedJson::array()}};
  for (const Section& section : remarks(comparison))
    json["sections"].push_back({{"title", section.title}, {"lines", section.lines}});
  if (has_peaks(comparison))
    json["sections"].push_back({{"title", peak_table(comparison).name}, {"lines", {peak_note()}}});
  add_tables_and_figures(json, tables, figures);
  return page_html(json_text(json));
}

std::string comparison_json(const Comparison& comparison) {
  OrderedJson json{{"recipe", comparison.recipe},
                   {"environment", comparison.environment},
                   {"training_steps", comparison.training_steps},
                   {"trajectories_a_step", comparison.trajectories},
                   {"validation_tasks", comparison.validation_tasks},
                   {"base", comparison.contestants[comparison.base].name},
                   {"methods", OrderedJson::array()},
                   {"left_out", OrderedJson::array()},
                   {"notes", comparison.notes}};
  for (std::size_t c = 0; c < comparison.contestants.size(); ++c)
    json["methods"].push_back(contestant_json(comparison, c));
  for (const LeftOut& left : comparison.left_out)
    json["left_out"].push_back({{"method", left.name}, {"reason", left.reason}});
  return json.dump(2) + "\n";
}

std::string comparison_markdown(const Comparison& comparison) {
  std::string text =
      "# Comparison of methods\n\n" + introduction(comparison) + "\n\n" + markdown(comparison_table(comparison));
  for (const Section& section : remarks(comparison)) {
    text += "\n## " + section.title + "\n\n";
    for (const std::string& line : section.lines) text += "* " + line + "\n";
  }
  if (has_peaks(comparison)) text += titled(peak_table(comparison)) + "\n" + peak_note() + "\n";
  return text + titled(seeds_table(comparison));
}

Status write_comparison(const Comparison& comparison, const std::filesystem::path& output) {
  CARNOT_RETURN_IF_ERROR(make_folder(output));
  CARNOT_RETURN_IF_ERROR(write_file_atomically(output / "comparison.json", comparison_json(comparison)));
  CARNOT_RETURN_IF_ERROR(write_file_atomically(output / "comparison.md", comparison_markdown(comparison)));
  return write_file_atomically(output / "report.html", comparison_html(comparison));
}

}  // namespace carnot
