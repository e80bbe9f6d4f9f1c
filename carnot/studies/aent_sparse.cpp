// studies/aent_sparse.cpp -- AEnt: an entropy bonus where optimal actions are few, arXiv:2509.03493
#include <array>
#include <span>

#include "carnot/core/base/statistics.h"
#include "carnot/core/base/thread_pool.h"
#include "carnot/studies/entries.h"
#include "carnot/studies/estimate.h"
#include "carnot/studies/sparse_decision.h"

namespace carnot {
namespace {

struct Bonus {
  EntropyBonus kind;
  std::string_view name;
};
constexpr std::array<Bonus, 4> kBonuses = {{{EntropyBonus::None, "none"},
                                            {EntropyBonus::Full, "full entropy"},
                                            {EntropyBonus::Clamped, "clamped"},
                                            {EntropyBonus::Adaptive, "clamped, adaptive"}}};

std::vector<double> differences(std::span<const double> values, std::span<const double> others) {
  std::vector<double> all;
  for (std::size_t i = 0; i < values.size(); ++i) all.push_back(values[i] - others[i]);
  return all;
}

/// The first bonus's mean over seeds, and what the others add to it, seed by seed.
std::string gains_over_none(std::span<const std::vector<double>> by_bonus) {
  std::string text = std::string(kBonuses[0].name) + " " + mean_text(by_bonus[0]);
  for (std::size_t b = 1; b < by_bonus.size(); ++b)
    text += "; " + std::string(kBonuses[b].name) + " " + mean_text(differences(by_bonus[b], by_bonus[0]));
  return text;
}

class AentSparse final : public Analysis {
 public:
  void fields(FieldVisitor& visit) override {
    visit.field("optimal", optimal_, "numbers of optimal actions per state", at_least(1));
    visit.field("seeds", seeds_, "processes for each number", at_least(1));
    visit.field("steps", ascent_.steps, "of gradient ascent", at_least(1));
    visit.field("learning_rate", ascent_.learning_rate, "of gradient ascent", above(0));
    visit.field("coefficient", ascent_.coefficient, "of the entropy bonus; the adaptive one starts from it",
                at_least(0));
    visit.field("clamp", ascent_.clamp, "share of the actions, the least likely, left out", between(0, 1));
    visit.field("normalise", ascent_.normalise, "divide the return's gradient by the reward's deviation, as GRPO does");
    visit.field("paths", ascent_.paths, "sampled for each step's gradient; 0: gradients are exact", at_least(0));
    visit.field("depth", process_.depth, "states on a path", at_least(1));
    visit.field("actions", process_.actions, "of a state", at_least(2));
    visit.field("spread", process_.spread, "standard deviation of the first logits", at_least(0));
    visit.field("low", ascent_.adaptive.low, "nats; below it the adaptive coefficient rises");
    visit.field("high", ascent_.adaptive.high, "nats; above it the adaptive coefficient falls");
    visit.field("rate", ascent_.adaptive.rate, "change of the adaptive coefficient per nat outside and step",
                at_least(0));
  }

  Result<AnalysisReport> run(const AnalysisInput& input) override {
    AnalysisReport report;
    report.tables = {
        {.name = "summary", .columns = {"optimal actions", "bonus", "mean return", "low", "high", "final return"}},
        {.name = "curves", .columns = {"optimal actions", "bonus", "step", "return", "low", "high", "coefficient"}}};
    report.figures = {{.title = "Mean return over the steps",
                       .caption = "Higher: the return rises earlier and further. Whiskers: 95 % interval over seeds.",
                       .table = "summary",
                       .draw = Draw::Bars,
                       .x = "optimal actions",
                       .y = {"mean return"},
                       .series = {"bonus"},
                       .low = "low",
                       .high = "high",
                       .x_axis = {.label = "optimal actions of " + std::to_string(process_.actions)},
                       .y_axis = {.label = "return", .low = 0, .high = 1}}};
    report.notes = {ascent_.paths == 0
                        ? "All gradients are exact: nothing is sampled, so exploration cannot fail here; what is "
                          "seen is what the bonus does to the speed and the end of the ascent."
                        : "Gradients are those of sampled paths: without a success among them a step has no "
                          "gradient but the bonus's. Returns are exact.",
                    "The bonus is the mean entropy of visited states, visits being weights without gradient."};
    for (const double count : optimal_) {
      if (count > process_.actions / 2)
        return Error{"optimal: found " + std::to_string(static_cast<int>(count)) +
                     ", expected at most half of the actions"};
      if (input.control.stop_requested()) return Error{"stopped"};
      add_count(static_cast<int>(count), report);
    }
    return report;
  }

 private:
  /// Curves of all seeds with one bonus and one number of optimal actions.
  std::vector<AscentCurve> ascend_all(int optimal, EntropyBonus kind) const {
    SparseProcessOptions process = process_;
    process.optimal = optimal;
    AscentOptions ascent = ascent_;
    ascent.bonus = kind;
    std::vector<AscentCurve> curves(seeds_);
    kernel_pool().run(seeds_, [&](std::int64_t seed) {
      const auto number = static_cast<std::uint64_t>(seed);
      RandomStream random(derive_seed(number, "aent-sparse", static_cast<std::uint64_t>(optimal)));
      curves[number] = ascend(sparse_process(process, random), ascent, random);
    });
    return curves;
  }

  void add_count(int optimal, AnalysisReport& report) const {
    std::array<std::vector<double>, kBonuses.size()> means, finals;  // by seed
    for (std::size_t b = 0; b < kBonuses.size(); ++b) {
      const std::string name(kBonuses[b].name);
      const std::vector<AscentCurve> curves = ascend_all(optimal, kBonuses[b].kind);
      for (const AscentCurve& curve : curves) {
        means[b].push_back(mean(curve.expected_return));  // over the steps: how early and how high the return rises
        finals[b].push_back(curve.expected_return.back());
      }
      for (std::size_t step = 0; step <= static_cast<std::size_t>(ascent_.steps); step += 10) {
        std::vector<double> returns;
        for (const AscentCurve& curve : curves) returns.push_back(curve.expected_return[step]);
        const Interval interval = mean_interval(returns);
        report.tables[1].add(optimal, name, step, mean(returns), interval.low, interval.high,
                             curves.front().coefficient[step]);
      }
      const Interval interval = mean_interval(means[b]);
      report.tables[0].add(optimal, name, mean(means[b]), interval.low, interval.high, mean(finals[b]));
    }
    report.figures.push_back(
        {.title = std::to_string(optimal) + " optimal actions of " + std::to_string(process_.actions),
         .caption = "Mean over seeds, 95 % interval.",
         .table = "curves",
         .rows = {{"optimal actions", {static_cast<double>(optimal)}}},
         .x = "step",
         .y = {"return"},
         .series = {"bonus"},
         .low = "low",
         .high = "high",
         .y_axis = {.label = "expected return", .low = 0, .high = 1}});
    const std::string where = std::to_string(optimal) + " optimal actions: ";
    const bool first = optimal == static_cast<int>(optimal_.front());
    report.find(where + "mean return, and gains over it",
                first ? "the fewer, the less full entropy gains; clamped keeps its gain" : "", gains_over_none(means));
    report.find(where + "final return, and gains over it", "", gains_over_none(finals));
    report.find(where + "final return, adaptive over full entropy", first ? "clamped and adaptive is more robust" : "",
                mean_text(differences(finals.back(), finals[1])));
  }

  std::vector<double> optimal_{1, 3, 10, 30, 100, 300};
  int seeds_ = 20;
  SparseProcessOptions process_{};
  AscentOptions ascent_{.adaptive = {.low = 0.5, .high = 2, .rate = 0.001, .least = 0, .most = 0.1, .warmup = 0}};
};

}  // namespace

std::unique_ptr<Analysis> aent_sparse() { return std::make_unique<AentSparse>(); }

}  // namespace carnot
