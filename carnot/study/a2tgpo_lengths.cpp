// study/a2tgpo_lengths.cpp -- A2TGPO: lengths of responses and tool calls by step, arXiv:2605.06200
#include <array>

#include "carnot/study/entries.h"
#include "carnot/study/run_curves.h"
#include "carnot/study/text.h"

namespace carnot {
namespace {

struct Measure {
  std::string_view metric;
  std::string_view title;
};
constexpr std::array<Measure, 2> kMeasures = {
    {{"response_length", "Sampled tokens a rollout"}, {"tool_call_counts", "Tool calls a rollout"}}};

class A2tgpoLengths final : public Analysis {
 public:
  void fields(FieldVisitor& visit) override {
    visit.field("window", window_, "steps that curves are smoothed over", at_least(1));
  }

  Result<AnalysisReport> run(const AnalysisInput& input) const override {
    auto runs = read_curves(input.paths);
    if (!runs) return runs.error();
    const std::vector<LabelledRuns> labelled = by_label(std::move(runs).value());
    AnalysisReport report;
    ResultTable table{.name = "by step", .columns = {"runs", "measure", "step", "minimum", "mean", "maximum"}};
    for (const Measure& measure : kMeasures) {
      const std::string metric(measure.metric);
      Plot plot{.title = std::string(measure.title) + ": minimum, mean, maximum",
                .x = {.label = "training step"},
                .y = {.low = 0}};
      for (std::size_t l = 0; l < labelled.size(); ++l) {
        const LabelledRuns& one = labelled[l];
        Series mean = series_of(one.label, one.curves(metric + "/mean"), window_);
        mean.low = mean_curve(one.curves(metric + "/min"), window_).mean;
        mean.high = mean_curve(one.curves(metric + "/max"), window_).mean;
        for (std::size_t s = 0; s < mean.x.size(); ++s)
          table.rows.push_back({one.label, metric, mean.x[s], mean.low[s], mean.y[s], mean.high[s]});
        report.findings.push_back({one.label + ": " + metric + ", maximum minus minimum, last third",
                                   metric == "response_length" ? "tighter with A2TGPO" : "-", range_text(one, metric)});
        plot.series.push_back(std::move(mean));
      }
      report.figures.push_back({svg(plot), "Means over runs; the band reaches from the shortest to the longest."});
    }
    report.tables = {std::move(table)};
    return report;
  }

 private:
  static std::string range_text(const LabelledRuns& one, const std::string& metric) {
    const auto low = one.curves(metric + "/min"), high = one.curves(metric + "/max");
    std::vector<double> ranges;
    for (std::size_t r = 0; r < low.size(); ++r)
      ranges.push_back(mean_between(high[r], 2.0 / 3, 1) - mean_between(low[r], 2.0 / 3, 1));
    return mean_text(ranges);
  }

  int window_ = 5;
};

}  // namespace

AnalysisEntry a2tgpo_lengths_entry() {
  return {.name = "a2tgpo-lengths",
          .paper = "2605.06200",
          .needs = AnalysisNeeds::Runs,
          .summary = "shortest, mean and longest responses, and tool calls, by step",
          .make = make_analysis<A2tgpoLengths>};
}

}  // namespace carnot
