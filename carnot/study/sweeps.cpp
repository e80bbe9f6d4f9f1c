// study/sweeps.cpp -- success of runs that differ in settings: the papers' ablations and sweeps.
//
// AEM's ablations (arXiv:2605.00425), AEPO's (arXiv:2510.14545), A2TGPO's clip swing (arXiv:2605.06200), ActFocus'
// signals, alpha and beta (arXiv:2605.14558).
#include <algorithm>

#include "carnot/chart/interval_chart.h"
#include "carnot/study/entries.h"
#include "carnot/study/estimate.h"
#include "carnot/study/run_curves.h"
#include "carnot/study/text.h"

namespace carnot {
namespace {

/// A row of the paper's table, and the settings that make it: texts that the label of its runs holds.
struct PaperRow {
  std::vector<std::string_view> settings;
  std::string_view figure;
};

class Sweep : public Analysis {
 public:
  Sweep(std::vector<PaperRow> paper, std::string note) : paper_(std::move(paper)), note_(std::move(note)) {}

  void fields(FieldVisitor& visit) override {
    visit.field("window", window_, "steps that curves are smoothed over", at_least(1));
  }

  Result<AnalysisReport> run(const AnalysisInput& input) const override {
    auto runs = read_curves(input.paths);
    if (!runs) return runs.error();
    AnalysisReport report;
    ResultTable table{.name = "by run", .columns = {"runs", "seed", "success after"}};
    IntervalChart after{.title = "Success after training", .x = {.label = "success", .percent = true}};
    Plot success{.title = "Success while training",
                 .x = {.label = "training step"},
                 .y = {.label = "success", .low = 0, .percent = true}};
    for (const LabelledRuns& one : by_label(std::move(runs).value())) {
      const std::vector<double> values = one.final_success();
      for (std::size_t r = 0; r < values.size(); ++r)
        table.rows.push_back({one.label, static_cast<double>(one.runs[r].run.seed), values[r]});
      report.findings.push_back({one.label, figure_of(one.runs.front()), mean_text(values)});
      const Estimate estimate = estimate_of(values);
      IntervalRow row{.name = one.label, .value = estimate.mean, .single = values};
      if (estimate.interval)
        row.interval = Extent{std::max(0.0, estimate.interval->low), std::min(1.0, estimate.interval->high)};
      after.rows.push_back(std::move(row));
      success.series.push_back(series_of(one.label, one.success_curves(), window_));
    }
    report.figures = {{svg(after), "A dot for each run; 95 % intervals over runs, of three or more."},
                      {svg(success), "Mean over runs; bands are 95 % intervals, of three or more."}};
    report.tables = {std::move(table)};
    report.notes = {
        note_,
        "Success on validation tasks; of a run that has not ended, while training over the last tenth of its steps."};
    return report;
  }

 private:
  /// The paper's figure for these settings; the most specific row that fits.
  std::string figure_of(const RunCurves& run) const {
    const PaperRow* best = nullptr;
    for (const PaperRow& row : paper_)
      if (fits(row, run.run) && (best == nullptr || row.settings.size() > best->settings.size())) best = &row;
    return best == nullptr ? "-" : std::string(best->figure);
  }

  static bool fits(const PaperRow& row, const StudiedRun& run) {
    for (const std::string_view setting : row.settings) {
      const auto equals = setting.find('=');
      const auto found = run.settings.find(std::string(setting.substr(0, equals)));
      if (found == run.settings.end() || found->second != setting.substr(equals + 1)) return false;
    }
    return true;
  }

  std::vector<PaperRow> paper_;
  std::string note_;
  int window_ = 5;
};

class AemAblation final : public Sweep {
 public:
  AemAblation()
      : Sweep({{{"method.name=grpo"}, "65.0 % (WebShop)"},
               {{"method.name=grpo + aem"}, "70.6 %"},
               {{"method.name=grpo + aem", "method.aem.lambda=-1"}, "64.5 % (reversed)"},
               {{"method.name=grpo + aem", "method.aem.shuffle=true"}, "64.8 % (shuffled)"},
               {{"method.name=grpo + aem", "method.aem.scope=trajectory"}, "68.7 %"},
               {{"method.name=grpo + aem", "method.aem.scope=batch"}, "66.1 %"}},
              "Runs to give: carnot compare RECIPE --methods \"grpo, grpo + aem, grpo + aem [method.aem.lambda=-1], "
              "grpo + aem "
              "[method.aem.shuffle=true], grpo + aem [method.aem.scope=trajectory], grpo + aem "
              "[method.aem.scope=batch]\"") {}
};

class AepoAblation final : public Sweep {
 public:
  AepoAblation()
      : Sweep({{{"method.name=aepo"}, "all parts"},
               {{"method.name=aepo", "method.aepo.branch.probe=false"}, "no look at entropy before the rollouts"},
               {{"method.name=aepo", "method.aepo.branch.penalty=0"}, "no penalty of branches in a row"},
               {{"method.name=aepo", "method.aepo.branching=false"}, "no branching"},
               {{"method.name=aepo", "method.aepo.preserve_gradient=false"}, "plain clip"},
               {{"method.name=aepo", "method.aepo.entropy_scale=0"}, "plain advantages"},
               {{"method.name=arpo"}, "what AEPO starts from"}},
              "Runs to give: carnot compare RECIPE --methods \"aepo, aepo [method.aepo.branch.probe=false], aepo "
              "[method.aepo.branch.penalty=0], aepo [method.aepo.branching=false], aepo "
              "[method.aepo.preserve_gradient=false], aepo [method.aepo.entropy_scale=0], arpo\". The column names "
              "what is taken away, not a figure: the paper's are of other tasks and models.") {}
};

class A2tgpoSweep final : public Sweep {
 public:
  A2tgpoSweep()
      : Sweep({{{"method.a2tgpo.clip_swing=0.3"}, "best of 0, 0.1, 0.3, 0.5"}},
              "Runs to give: carnot compare RECIPE --methods \"a2tgpo [method.a2tgpo.clip_swing=0], a2tgpo "
              "[method.a2tgpo.clip_swing=0.1], a2tgpo [method.a2tgpo.clip_swing=0.3], a2tgpo "
              "[method.a2tgpo.clip_swing=0.5]\"") {}
};

class ActfocusAblation final : public Sweep {
 public:
  ActfocusAblation()
      : Sweep({{{"method.actfocus.signal=reference_energy"}, "the paper's signal"},
               {{"method.actfocus.signal=reference_entropy"}, "its comparison"},
               {{"method.actfocus.signal=surprisal"}, "its comparison"},
               {{"method.actfocus.signal=log_prob_shift"}, "its comparison"},
               {{"method.actfocus.signal=reference_energy", "method.actfocus.beta=0"}, "no signal: all actions alike"},
               {{"method.name=grpo"}, "no weights"}},
              "Runs to give: carnot compare RECIPE --methods \"grpo, grpo + actfocus, grpo + actfocus "
              "[method.actfocus.signal=reference_entropy], grpo + actfocus [method.actfocus.signal=surprisal], grpo + "
              "actfocus [method.actfocus.signal=log_prob_shift], grpo + actfocus [method.actfocus.beta=0]\". The "
              "column names the signal, not a figure: the paper's are of other tasks and models.") {}
};

class ActfocusSweep final : public Sweep {
 public:
  ActfocusSweep()
      : Sweep({{{"method.actfocus.alpha=0.1", "method.actfocus.beta=0.5"}, "the paper's setting"}},
              "Runs to give: carnot compare RECIPE --methods \"grpo + actfocus [method.actfocus.alpha=0], grpo + "
              "actfocus "
              "[method.actfocus.alpha=0.1], ...\" with alpha in 0, 0.1, 0.3, 0.5, 1 and beta in 0, 0.5, 1") {}
};

}  // namespace

AnalysisEntry aem_ablation_entry() {
  return {.name = "aem-ablation",
          .paper = "2605.00425",
          .needs = AnalysisNeeds::Runs,
          .summary = "success with AEM, reversed, shuffled, and with other scopes",
          .make = make_analysis<AemAblation>};
}

AnalysisEntry aepo_ablation_entry() {
  return {.name = "aepo-ablation",
          .paper = "2510.14545",
          .needs = AnalysisNeeds::Runs,
          .summary = "success with AEPO, and without each of its parts",
          .make = make_analysis<AepoAblation>};
}

AnalysisEntry a2tgpo_sweep_entry() {
  return {.name = "a2tgpo-sweep",
          .paper = "2605.06200",
          .needs = AnalysisNeeds::Runs,
          .summary = "success for values of the clip swing beta",
          .make = make_analysis<A2tgpoSweep>};
}

AnalysisEntry actfocus_ablation_entry() {
  return {.name = "actfocus-ablation",
          .paper = "2605.14558",
          .needs = AnalysisNeeds::Runs,
          .summary = "success by the signal that weighs action tokens",
          .make = make_analysis<ActfocusAblation>};
}

AnalysisEntry actfocus_sweep_entry() {
  return {.name = "actfocus-sweep",
          .paper = "2605.14558",
          .needs = AnalysisNeeds::Runs,
          .summary = "success for values of alpha and beta",
          .make = make_analysis<ActfocusSweep>};
}

}  // namespace carnot
