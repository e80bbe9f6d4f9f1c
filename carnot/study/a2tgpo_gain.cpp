// study/a2tgpo_gain.cpp -- A2TGPO: information gains and the advantages made of them, by turn, arXiv:2605.06200
#include <algorithm>
#include <cmath>
#include <map>

#include "carnot/base/statistics.h"
#include "carnot/chart/scale.h"
#include "carnot/credit/group_relative.h"
#include "carnot/credit/members.h"
#include "carnot/credit/turn_gain.h"
#include "carnot/credit/turn_group_gain.h"
#include "carnot/study/by_turn.h"
#include "carnot/study/entries.h"
#include "carnot/study/rollout_steps.h"

namespace carnot {
namespace {

/// One of the two ways to make advantages of gains, on the same rollouts.
struct Shape {
  std::string name{};
  ByTurn by_turn{};
  ByTurn by_terms{};  ///< by the number of gains from the turn on, its own included
  std::vector<double> steps{}, lowest{}, mean{}, highest{};
  std::map<int, std::map<double, std::vector<double>>> by_turn_and_step{};

  /// Advantages of the turn, averaged at each step. Turns are counted from 1.
  Series over_steps(int turn) const {
    Series series{.name = name + ", turn " + std::to_string(turn)};
    if (const auto found = by_turn_and_step.find(turn); found != by_turn_and_step.end())
      for (const auto& [step, advantages] : found->second) {
        series.x.push_back(step);
        series.y.push_back(carnot::mean(advantages));
      }
    return series;
  }

  void add_step(double step, const std::vector<double>& advantages) {
    if (advantages.empty()) return;
    const auto [low, high] = std::minmax_element(advantages.begin(), advantages.end());
    steps.push_back(step);
    lowest.push_back(*low);
    mean.push_back(carnot::mean(advantages));
    highest.push_back(*high);
  }

  /// Deviation of turns that sum up the most gains, over that of turns with one.
  double growth() const {
    constexpr std::size_t kFew = 10;
    double first = std::nan(""), last = std::nan("");
    for (const auto& [terms, values] : by_terms.values()) {
      if (terms == 1) first = std_population(values);
      if (values.size() >= kFew) last = std_population(values);
    }
    return last / first;
  }
};

class A2tgpoGain final : public Analysis {
 public:
  void fields(FieldVisitor& visit) override {
    range_.fields(visit);
    visit.field("discount", discount_, "of later turns' gains, per turn", between(0, 1));
  }

  Result<AnalysisReport> run(const AnalysisInput& input) const override {
    ByTurn raw, scores;
    Shape igpo{.name = "IGPO"}, a2tgpo{.name = "A2TGPO"};
    const CreditRule outcome = group_relative({.normalisation = population_normalisation()});
    const std::vector<CreditRule> igpo_chain{turn_gain({.discount = discount_})};
    const std::vector<CreditRule> a2tgpo_chain{outcome, turn_group_gain({.discount = discount_})};
    const auto runs = visit_rollouts(input.paths, range_, [&](const StudiedStep& step) -> Status {
      if (const Status status = require_info_gain(step); !status) return status;
      add_gains(step, raw, scores);
      add_shape(step, igpo_chain, igpo);
      add_shape(step, a2tgpo_chain, a2tgpo);
      return Done{};
    });
    if (!runs) return runs.error();
    return report_of(raw, scores, igpo, a2tgpo);
  }

 private:
  static void add_gains(const StudiedStep& step, ByTurn& raw, ByTurn& scores) {
    for (const auto& members : members_by_group(step.all)) {
      const auto normalised = turn_group_gains(step.all, members);
      for (std::size_t m = 0; m < members.size(); ++m) {
        const auto gains = gains_of(step.all[members[m]], GainSteps::Turns);
        for (std::size_t g = 0; g < gains.size(); ++g) {
          raw.add(gains[g].turn + 1, gains[g].value);
          scores.add(gains[g].turn + 1, normalised[m][g].value);
        }
      }
    }
  }

  static void add_shape(const StudiedStep& step, const std::vector<CreditRule>& chain, Shape& shape) {
    const CreditTable table = run_credit(chain, step.all);
    std::vector<double> advantages;
    for (const int i : step.counting) {
      const Trajectory& one = step.all[i];
      const auto gains = gains_of(one, GainSteps::Turns);
      for (std::size_t g = 0; g < gains.size(); ++g) {
        if (one.turn(gains[g].turn).num_sampled() == 0) continue;
        const double a = table[i].advantage[one.sampled_begin(gains[g].turn)];
        advantages.push_back(a);
        shape.by_turn.add(gains[g].turn + 1, a);
        shape.by_turn_and_step[gains[g].turn + 1][static_cast<double>(step.source.step)].push_back(a);
        shape.by_terms.add(static_cast<int>(gains.size() - g), a);
      }
    }
    shape.add_step(static_cast<double>(step.source.step), advantages);
  }

  static AnalysisReport report_of(const ByTurn& raw, const ByTurn& scores, const Shape& igpo, const Shape& a2tgpo) {
    AnalysisReport report;
    for (const auto& [turn, values] : raw.values())
      report.findings.push_back({"raw gain of turn " + std::to_string(turn) + ": mean, deviation", "-",
                                 number_text(mean(values)) + ", " + number_text(std_population(values)) +
                                     " (n = " + std::to_string(values.size()) + ")"});
    for (const Shape* shape : {&igpo, &a2tgpo})
      report.findings.push_back({shape->name + ": spread of turns with the most gains ahead, over turns with one",
                                 shape == &igpo ? "grows with turns" : "stays even", number_text(shape->growth())});
    ResultTable drift{.name = "turns by step", .columns = {"method", "turn", "step", "mean advantage"}};
    Plot first_turns{.title = "Advantage of the first two turns, by training step",
                     .x = {.label = "step"},
                     .y = {.label = "mean advantage"}};
    for (const Shape* shape : {&igpo, &a2tgpo})
      for (const int turn : {1, 2}) {
        Series series = shape->over_steps(turn);
        const auto below = std::count_if(series.y.begin(), series.y.end(), [](double a) { return a < 0; });
        report.findings.push_back(
            {shape->name + ": steps at which turn " + std::to_string(turn) + " has a negative mean advantage",
             shape == &igpo ? "drifts with the turn (proposition 1)" : "no drift",
             std::to_string(below) + " of " + std::to_string(series.y.size())});
        for (std::size_t s = 0; s < series.x.size(); ++s)
          drift.rows.push_back({shape->name, static_cast<double>(turn), series.x[s], series.y[s]});
        first_turns.series.push_back(std::move(series));
      }
    ResultTable by_turn = table_by_turn("by turn", "what");
    raw.add_rows(by_turn, "raw gain");
    scores.add_rows(by_turn, "normalised gain");
    ResultTable by_terms = table_by_turn("by number of gains ahead", "method");
    ResultTable by_step{.name = "by step", .columns = {"method", "step", "minimum", "mean", "maximum"}};
    Plot turns{.title = "Advantage by turn", .x = {.label = "turn"}, .y = {.label = "advantage"}};
    Plot steps{.title = "Advantage by training step: minimum, mean, maximum",
               .x = {.label = "step"},
               .y = {.label = "advantage"}};
    int colour = 0;
    for (const Shape* shape : {&igpo, &a2tgpo}) {
      shape->by_turn.add_rows(by_turn, shape->name + " advantage");
      shape->by_terms.add_rows(by_terms, shape->name);
      turns.series.push_back(shape->by_turn.series(shape->name));
      steps.series.push_back({.name = shape->name,
                              .x = shape->steps,
                              .y = shape->mean,
                              .low = shape->lowest,
                              .high = shape->highest,
                              .colour = colour++});
      for (std::size_t s = 0; s < shape->steps.size(); ++s)
        by_step.rows.push_back({shape->name, shape->steps[s], shape->lowest[s], shape->mean[s], shape->highest[s]});
    }
    Plot gains{.title = "Gain by turn", .x = {.label = "turn"}, .y = {.label = "gain"}};
    gains.series = {raw.series("raw"), scores.series("normalised")};
    report.figures = {{svg(gains), "Mean and one deviation to both sides."},
                      {svg(turns), "Both methods' credit on the same rollouts, of turns with a gain."},
                      {svg(first_turns), "Both methods' credit on the same rollouts, averaged over a step's turns."},
                      {svg(steps), "Bands reach from the smallest to the largest advantage."}};
    report.tables = {std::move(by_turn), std::move(by_terms), std::move(by_step), std::move(drift)};
    report.notes = {"Advantages are both methods' own, the outcome's part included, on turns that have a gain.",
                    "Spreads: the most gains ahead that at least ten turns have."};
    return report;
  }

  StepRange range_{};
  double discount_ = 1;
};

}  // namespace

AnalysisEntry a2tgpo_gain_entry() {
  return {.name = "a2tgpo-gain",
          .paper = "2605.06200",
          .needs = AnalysisNeeds::Rollouts,
          .summary = "information gains and advantages by turn: IGPO's sums against A2TGPO's",
          .make = make_analysis<A2tgpoGain>};
}

}  // namespace carnot
