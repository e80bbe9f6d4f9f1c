#include "carnot/studies/comparison_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "carnot/core/run/progress.h"

namespace carnot {
namespace {

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
              " a task), mean over seeds ± half the width of its 95 % interval.",
          "difference: success after training minus that of " + base +
              " with the same seed, in percentage points, mean over seeds with its 95 % interval.",
          "All intervals are Student's t over seeds; fewer than three seeds have none, and no verdict. \"contains 0\": "
          "the seeds do not tell the method from " +
              base +
              ". \"no spread\": all differences are equal, which tells nothing of their spread. Of twenty intervals of "
              "methods that are all alike, about one excludes 0.",
          "response, entropy: sampled tokens of a trajectory, nats a token, both on the validation tasks after "
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

}  // namespace

std::string introduction(const Comparison& comparison) {
  const std::size_t all = comparison.contestants.size() * comparison.contestants.front().runs.size();
  const std::int64_t tokens = comparison.max_sampled_tokens;
  return comparison.recipe + ", " + comparison.environment + ": " + (tokens > 0 ? "at most " : "") +
         std::to_string(comparison.training_steps) + " training steps of " + std::to_string(comparison.trajectories) +
         " trajectories" + (tokens > 0 ? ", ending once " + std::to_string(tokens) + " tokens are sampled; " : "; ") +
         std::to_string(num_finished(comparison)) + " of " + std::to_string(all) +
         " runs finished. For each seed all methods start from one policy.";
}

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

bool has_peaks(const Comparison& comparison) {
  for (const ContestantResult& contestant : comparison.contestants)
    for (const ContestRun& run : contestant.runs)
      if (run.finished && std::isfinite(run.peak)) return true;
  return false;
}

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

std::string peak_note() {
  return "peak: the best evaluation of a run, from before training to its end (eval.every); step: mean over seeds. The "
         "best of several evaluations is high by chance as well: it lies above the final figure even where nothing is "
         "lost.";
}

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

}  // namespace carnot
