// studies/sweeps.cpp -- success of runs that differ in settings: the papers' ablations and sweeps.
//
// AEM's ablations (arXiv:2605.00425), AEPO's (arXiv:2510.14545), A2TGPO's clip swing (arXiv:2605.06200), ActFocus'
// signals, alpha and beta (arXiv:2605.14558).
#include <algorithm>
#include <cmath>

#include "carnot/studies/entries.h"
#include "carnot/studies/estimate.h"
#include "carnot/studies/run_curves.h"

namespace carnot {
namespace {

/// A row of the paper's table, and the settings that make it: texts that the label of its runs holds.
struct PaperRow {
  std::vector<std::string_view> settings;
  std::string_view figure;
};

bool fits(const PaperRow& row, const StudiedRun& run) {
  return std::all_of(row.settings.begin(), row.settings.end(), [&](std::string_view setting) {
    const auto equals = setting.find('=');
    const auto found = run.settings.find(std::string(setting.substr(0, equals)));
    return found != run.settings.end() && found->second == setting.substr(equals + 1);
  });
}

class Sweep final : public CurveAnalysis {
 public:
  Sweep(std::vector<PaperRow> paper, std::string note) : paper_(std::move(paper)), note_(std::move(note)) {}

 private:
  AnalysisReport begin() const override {
    const Table curves = curve_table("success by step", "runs");
    return {.tables = {{.name = "by run", .columns = {"runs", "seed", "success after"}},
                       {.name = "by label", .columns = {"runs", "success after", "low", "high"}},
                       curves},
            .figures = {{.title = "Success after training",
                         .caption = "A dot for each run; 95 % intervals over runs, of three or more.",
                         .table = "by label",
                         .draw = Draw::Intervals,
                         .x = "runs",
                         .y = {"success after"},
                         .low = "low",
                         .high = "high",
                         .y_axis = share_axis("success"),
                         .dots = "by run"},
                        curve_figure(curves, "Success while training", share_axis("success"))},
            .notes = {note_,
                      "Success on validation tasks; of a run that has not ended, while training over the last "
                      "tenth of its steps."}};
  }

  void add(const std::vector<LabelledRuns>& all, AnalysisReport& report) const override {
    for (const LabelledRuns& one : all) add_runs(one, report);
  }

  void add_runs(const LabelledRuns& one, AnalysisReport& report) const {
    const std::vector<double> values = one.final_success();
    for (std::size_t r = 0; r < values.size(); ++r) report.tables[0].add(one.label, one.runs[r].run.seed, values[r]);
    const Estimate estimate = estimate_of(values);
    const Interval interval = estimate.interval.value_or(Interval{std::nan(""), std::nan("")});
    report.tables[1].add(one.label, estimate.mean, interval.low, interval.high);
    add_curve(report.tables[2], one.label, mean_curve(one.success_curves(), window_));
    report.find(one.label, figure_of(one.runs.front().run), mean_text(values));
  }

  /// The paper's figure for these settings; the most specific row that fits.
  std::string figure_of(const StudiedRun& run) const {
    const PaperRow* best = nullptr;
    for (const PaperRow& row : paper_)
      if (fits(row, run) && (best == nullptr || row.settings.size() > best->settings.size())) best = &row;
    return best == nullptr ? "-" : std::string(best->figure);
  }

  std::vector<PaperRow> paper_;
  std::string note_;
};

std::unique_ptr<Analysis> sweep(std::vector<PaperRow> paper, const std::string& methods, const std::string& more = "") {
  return std::make_unique<Sweep>(std::move(paper), "Runs to give: carnot compare RECIPE --methods " + methods + more);
}

}  // namespace

std::unique_ptr<Analysis> aem_ablation() {
  return sweep({{{"method.name=grpo"}, "65.0 % (WebShop)"},
                {{"method.name=grpo + aem"}, "70.6 %"},
                {{"method.name=grpo + aem", "method.aem.lambda=-1"}, "64.5 % (reversed)"},
                {{"method.name=grpo + aem", "method.aem.shuffle=true"}, "64.8 % (shuffled)"},
                {{"method.name=grpo + aem", "method.aem.scope=trajectory"}, "68.7 %"},
                {{"method.name=grpo + aem", "method.aem.scope=batch"}, "66.1 %"}},
               "\"grpo, grpo + aem, grpo + aem [method.aem.lambda=-1], grpo + aem [method.aem.shuffle=true], grpo + "
               "aem [method.aem.scope=trajectory], grpo + aem [method.aem.scope=batch]\"");
}

std::unique_ptr<Analysis> aepo_ablation() {
  return sweep({{{"method.name=aepo"}, "all parts"},
                {{"method.name=aepo", "method.aepo.branch.probe=false"}, "no look at entropy before the rollouts"},
                {{"method.name=aepo", "method.aepo.branch.penalty=0"}, "no penalty for consecutive branches"},
                {{"method.name=aepo", "method.aepo.branching=false"}, "no branching"},
                {{"method.name=aepo", "method.aepo.preserve_gradient=false"}, "plain clip"},
                {{"method.name=aepo", "method.aepo.entropy_scale=0"}, "plain advantages"},
                {{"method.name=arpo"}, "what AEPO starts from"}},
               "\"aepo, aepo [method.aepo.branch.probe=false], aepo [method.aepo.branch.penalty=0], aepo "
               "[method.aepo.branching=false], aepo [method.aepo.preserve_gradient=false], aepo "
               "[method.aepo.entropy_scale=0], arpo\"",
               ". The column names what is taken away, not a figure: the paper's are of other tasks and models.");
}

std::unique_ptr<Analysis> a2tgpo_sweep() {
  return sweep({{{"method.a2tgpo.clip_swing=0.3"}, "best of 0, 0.1, 0.3, 0.5"}},
               "\"a2tgpo [method.a2tgpo.clip_swing=0], a2tgpo [method.a2tgpo.clip_swing=0.1], a2tgpo "
               "[method.a2tgpo.clip_swing=0.3], a2tgpo [method.a2tgpo.clip_swing=0.5]\"");
}

std::unique_ptr<Analysis> actfocus_ablation() {
  return sweep({{{"method.actfocus.signal=reference_energy"}, "the paper's signal"},
                {{"method.actfocus.signal=reference_entropy"}, "its comparison"},
                {{"method.actfocus.signal=surprisal"}, "its comparison"},
                {{"method.actfocus.signal=log_prob_shift"}, "its comparison"},
                {{"method.actfocus.signal=reference_energy", "method.actfocus.beta=0"}, "no signal: all actions alike"},
                {{"method.name=grpo"}, "no weights"}},
               "\"grpo, grpo + actfocus, grpo + actfocus [method.actfocus.signal=reference_entropy], grpo + actfocus "
               "[method.actfocus.signal=surprisal], grpo + actfocus [method.actfocus.signal=log_prob_shift], grpo + "
               "actfocus [method.actfocus.beta=0]\"",
               ". The column names the signal, not a figure: the paper's are of other tasks and models.");
}

std::unique_ptr<Analysis> actfocus_sweep() {
  return sweep({{{"method.actfocus.alpha=0.1", "method.actfocus.beta=0.5"}, "the paper's setting"}},
               "\"grpo + actfocus [method.actfocus.alpha=0], grpo + actfocus [method.actfocus.alpha=0.1], ...\" with "
               "alpha in 0, 0.1, 0.3, 0.5, 1 and beta in 0, 0.5, 1");
}

}  // namespace carnot
