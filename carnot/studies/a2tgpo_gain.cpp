// studies/a2tgpo_gain.cpp -- A2TGPO: information gains and the advantages made of them, by turn, arXiv:2605.06200
#include <algorithm>
#include <cmath>

#include "carnot/core/base/statistics.h"
#include "carnot/core/credit/group_relative.h"
#include "carnot/core/credit/rule.h"
#include "carnot/core/credit/turn_gain.h"
#include "carnot/core/credit/turn_group_gain.h"
#include "carnot/studies/correlation.h"
#include "carnot/studies/distribution.h"
#include "carnot/studies/entries.h"
#include "carnot/studies/rollout_analysis.h"

namespace carnot {
namespace {

/// One of the two ways to make advantages of gains, on the same rollouts.
struct Shape {
  std::string name;
  std::string paper_spread;
  std::string paper_drift;
  std::vector<CreditRule> chain{};
  ByTurn by_turn{};
  ByTurn by_terms{};  ///< by the number of gains from the turn on, its own included
  std::map<std::int64_t, std::vector<double>> by_step{};
  std::map<int, std::map<std::int64_t, std::vector<double>>> by_turn_and_step{};

  void add(const StudiedStep& step);
  double growth() const;
};

void Shape::add(const StudiedStep& step) {
  const CreditTable table = run_credit(chain, step.all);
  for (const int i : step.counting) {
    const Trajectory& one = step.all[i];
    const auto gains = gains_of(one, GainSteps::Turns);
    for (std::size_t g = 0; g < gains.size(); ++g) {
      const int turn = gains[g].turn;
      if (one.turn(turn).num_sampled() == 0) continue;
      const double a = table[i].advantage[one.sampled_begin(turn)];
      by_turn[turn + 1].push_back(a);
      by_turn_and_step[turn + 1][step.source.step].push_back(a);
      by_terms[static_cast<int>(gains.size() - g)].push_back(a);
      by_step[step.source.step].push_back(a);
    }
  }
}

/// Deviation of turns that sum up the most gains, over that of turns with one.
double Shape::growth() const {
  constexpr std::size_t kFew = 10;
  double first = std::nan(""), last = std::nan("");
  for (const auto& [terms, values] : by_terms) {
    if (terms == 1) first = std_population(values);
    if (values.size() >= kFew) last = std_population(values);
  }
  return last / first;
}

Figure lines(std::string title, std::string table, std::string x, std::string y, std::string series) {
  return {.title = std::move(title),
          .caption = "Both methods' credit on the same rollouts, of turns with a gain.",
          .table = std::move(table),
          .x = std::move(x),
          .y = {std::move(y)},
          .series = {std::move(series)},
          .y_axis = {.label = "advantage"}};
}

class A2tgpoGain final : public RolloutAnalysis {
 public:
  A2tgpoGain() : RolloutAnalysis({.info_gain = true}) {}

 private:
  void options(FieldVisitor& visit) override {
    visit.field("discount", discount_, "of later turns' gains, per turn", between(0, 1));
  }

  void add(const StudiedStep& step) override {
    if (shapes_.empty()) {
      shapes_ = {
          {"IGPO", "grows with turns", "drifts with the turn (proposition 1)", {turn_gain({.discount = discount_})}},
          {"A2TGPO", "stays even", "no drift", {outcome_, turn_group_gain({.discount = discount_})}}};
    }
    for (const auto& members : members_by_group(step.all)) {
      const auto normalised = turn_group_gains(step.all, members);
      for (std::size_t m = 0; m < members.size(); ++m) {
        const auto gains = gains_of(step.all[members[m]], GainSteps::Turns);
        for (std::size_t g = 0; g < gains.size(); ++g) {
          raw_[gains[g].turn + 1].push_back(gains[g].value);
          scores_[gains[g].turn + 1].push_back(normalised[m][g].value);
          if (g > 0) successive_.add(gains[g - 1].value, gains[g].value, groups_);
        }
      }
      ++groups_;
    }
    add_reach(step);
    for (Shape& shape : shapes_) shape.add(step);
  }

  /// Outcome and gains of A2TGPO's advantages, by the share of a group that reaches the turn with a gain.
  void add_reach(const StudiedStep& step) {
    const CreditTable outcome = run_credit(std::vector{outcome_}, step.all);
    const CreditTable both = run_credit(shapes_.back().chain, step.all);
    for (const auto& members : members_by_group(step.all)) {
      std::map<int, std::vector<std::size_t>> reached;
      for (const int i : members)
        for (const Gain& gain : gains_of(step.all[i], GainSteps::Turns))
          if (step.all[i].turn(gain.turn).num_sampled() > 0) reached[gain.turn].push_back(i);
      for (const auto& [turn, by] : reached)
        for (const std::size_t i : by) {
          const int first = step.all[i].sampled_begin(turn);
          const double a = outcome[i].advantage[first];
          Reach& reach = reach_[(4 * by.size() - 1) / members.size()];
          reach.outcome.push_back(std::abs(a));
          reach.gains.push_back(std::abs(both[i].advantage[first] - a));
        }
    }
  }

  Result<AnalysisReport> report(const AnalysisInput&) const override {
    AnalysisReport report;
    Table by_turn = table_by_turn("by turn", "what"), by_terms = table_by_turn("by number of gains ahead", "method");
    Table by_step{.name = "by step", .columns = {"method", "step", "minimum", "mean", "maximum"}};
    Table drift{.name = "turns by step", .columns = {"method", "turn", "step", "mean advantage"}};
    for (const auto& [turn, values] : raw_)
      report.find("raw gain of turn " + std::to_string(turn) + ": mean, deviation", "-",
                  number_text(mean(values)) + ", " + number_text(std_population(values)) +
                      " (n = " + std::to_string(values.size()) + ")");
    add_by_turn(by_turn, "raw gain", raw_);
    add_by_turn(by_turn, "normalised gain", scores_);
    report.find("Pearson: a turn's raw gain and the next one's", "negative: a supportive result lowers later gains",
                correlation_text(resampled_pearson(successive_.before, successive_.after, successive_.group)));
    Table by_reach{.name = "by share of the group that reaches the turn",
                   .columns = {"quarter", "turns", "mean |outcome|", "mean |gains|", "outcome over gains"}};
    for (const auto& [quarter, reach] : reach_)
      by_reach.add(quarter + 1, reach.gains.size(), mean(reach.outcome), mean(reach.gains),
                   mean(reach.outcome) / mean(reach.gains));
    for (const Shape& shape : shapes_) {
      report.find(shape.name + ": spread of turns with the most gains ahead, over turns with one", shape.paper_spread,
                  number_text(shape.growth()));
      add_by_turn(by_turn, shape.name + " advantage", shape.by_turn);
      add_by_turn(by_terms, shape.name, shape.by_terms);
      for (const auto& [step, values] : shape.by_step) {
        const auto [low, high] = std::minmax_element(values.begin(), values.end());
        by_step.add(shape.name, step, *low, mean(values), *high);
      }
    }
    for (const Shape& shape : shapes_)
      for (const int turn : {1, 2}) add_drift(shape, turn, report, drift);
    Figure gains = lines("Gain by turn", "by turn", "turn", "mean", "what");
    gains.caption = "Mean and one deviation to both sides.";
    gains.rows = {{"what", {"raw gain", "normalised gain"}}};
    gains.y_axis.label = "gain";
    Figure turns = lines("Advantage by turn", "by turn", "turn", "mean", "what");
    turns.rows = {{"what", {"IGPO advantage", "A2TGPO advantage"}}};
    gains.spread = turns.spread = "deviation";
    Figure first_turns = lines("Advantage of the first two turns", "turns by step", "step", "mean advantage", "method");
    first_turns.series.push_back("turn");
    Figure steps = lines("Advantage by training step: minimum, mean, maximum", "by step", "step", "mean", "method");
    steps.low = "minimum";
    steps.high = "maximum";
    report.figures = {std::move(gains), std::move(turns), std::move(first_turns), std::move(steps)};
    report.tables = {std::move(by_turn), std::move(by_terms), std::move(by_reach), std::move(by_step),
                     std::move(drift)};
    report.notes = {"Advantages are both methods' own, the outcome's part included, on turns that have a gain.",
                    "Spreads: the most gains ahead that at least ten turns have."};
    return report;
  }

  static void add_drift(const Shape& shape, int turn, AnalysisReport& report, Table& table) {
    std::size_t below = 0, steps = 0;
    if (const auto found = shape.by_turn_and_step.find(turn); found != shape.by_turn_and_step.end())
      for (const auto& [step, values] : found->second) {
        table.add(shape.name, turn, step, mean(values));
        below += mean(values) < 0 ? 1 : 0;
        ++steps;
      }
    report.find(shape.name + ": steps at which turn " + std::to_string(turn) + " has a negative mean advantage",
                shape.paper_drift, std::to_string(below) + " of " + std::to_string(steps));
  }

  /// Gains of two turns of one trajectory that follow each other, and the group's number.
  struct Successive {
    std::vector<double> before{}, after{};
    std::vector<int> group{};

    void add(double first, double second, int of_group) {
      before.push_back(first);
      after.push_back(second);
      group.push_back(of_group);
    }
  };
  /// Sizes of the two parts of an advantage.
  struct Reach {
    std::vector<double> outcome{}, gains{};
  };

  double discount_ = 1;
  ByTurn raw_{}, scores_{};
  Successive successive_{};
  int groups_ = 0;
  std::map<std::size_t, Reach> reach_{};  ///< by quarter of the group, from 0
  const CreditRule outcome_ = group_relative({.normalisation = population_normalisation()});
  std::vector<Shape> shapes_{};
};

}  // namespace

std::unique_ptr<Analysis> a2tgpo_gain() { return std::make_unique<A2tgpoGain>(); }

}  // namespace carnot
