#include "carnot/studies/comparison_report.h"

#include <cmath>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/studies/comparison_page.h"
#include "carnot/studies/comparison_text.h"

namespace carnot {
namespace {

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
