// studies/a2tgpo_lengths.cpp -- A2TGPO: lengths of responses and tool calls by step, arXiv:2605.06200
#include "carnot/studies/entries.h"
#include "carnot/studies/estimate.h"
#include "carnot/studies/run_curves.h"

namespace carnot {
namespace {

Figure lengths_figure(std::string title, const std::string& measure) {
  return {.title = std::move(title),
          .caption = "Means over runs; the band reaches from the shortest to the longest.",
          .table = "by step",
          .rows = {{"measure", {measure}}},
          .x = "step",
          .y = {"mean"},
          .series = {"runs"},
          .low = "minimum",
          .high = "maximum",
          .x_axis = {.label = "training step"},
          .y_axis = {.label = measure, .low = 0}};
}

std::string range_text(const LabelledRuns& one, const std::string& metric) {
  const auto low = one.curves(metric + "/min"), high = one.curves(metric + "/max");
  std::vector<double> ranges;
  for (std::size_t r = 0; r < low.size(); ++r)
    ranges.push_back(mean_between(high[r], 2.0 / 3, 1) - mean_between(low[r], 2.0 / 3, 1));
  return mean_text(ranges);
}

class A2tgpoLengths final : public CurveAnalysis {
  AnalysisReport begin() const override {
    return {.tables = {{.name = "by step", .columns = {"runs", "measure", "step", "minimum", "mean", "maximum"}}},
            .figures = {lengths_figure("Sampled tokens per rollout: minimum, mean, maximum", "response_length"),
                        lengths_figure("Tool calls per rollout: minimum, mean, maximum", "tool_call_counts")}};
  }

  void add(const std::vector<LabelledRuns>& all, AnalysisReport& report) const override {
    for (const std::string metric : {"response_length", "tool_call_counts"})
      for (const LabelledRuns& one : all) {
        const auto curve = [&](const char* part) { return mean_curve(one.curves(metric + part), window_); };
        const MeanCurve low = curve("/min"), mean = curve("/mean"), high = curve("/max");
        for (std::size_t s = 0; s < mean.step.size(); ++s)
          report.tables[0].add(one.label, metric, mean.step[s], low.mean[s], mean.mean[s], high.mean[s]);
        report.find(one.label + ": " + metric + ", maximum minus minimum, last third",
                    metric == "response_length" && one.label.starts_with("a2tgpo") ? "smaller than GRPO's" : "-",
                    range_text(one, metric));
      }
  }
};

}  // namespace

std::unique_ptr<Analysis> a2tgpo_lengths() { return std::make_unique<A2tgpoLengths>(); }

}  // namespace carnot
