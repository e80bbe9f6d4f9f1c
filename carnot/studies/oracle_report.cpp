#include "carnot/studies/oracle_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "carnot/studies/correlation.h"
#include "carnot/studies/credit_agreement.h"
#include "carnot/studies/estimate.h"

namespace carnot {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr std::array<const char*, 3> kSpans = {"turn", "thought", "action"};

/// One turn, thought or action with a known advantage.
struct Item {
  const OracleTurn* turn = nullptr;
  int begin = 0, end = 0;  ///< its tokens in the trajectory
  double advantage = 0, first = 0, second = 0;
  double error = 0;  ///< standard error of the advantage
};

double part_of(const OracleAdvantage& advantage, std::size_t span) {
  return span == 0 ? advantage.turn : span == 1 ? advantage.thought : advantage.action;
}

/// The standard error of the difference between the values at a span's two ends; a trajectory's own score has none.
double error_of(const OracleTurn& turn, std::span<const StateValue> values, std::size_t span) {
  const int before = span == 2 ? turn.inside : turn.before;
  const int after = span == 1 ? turn.inside : turn.after;
  return std::hypot(values[before].standard_error, after < 0 ? 0 : values[after].standard_error);
}

class Oracle {
 public:
  explicit Oracle(const OracleFindings& found) : found_(found) {
    for (const OracleTurn& turn : found.plan.turns)
      for (std::size_t span = 0; span < kSpans.size(); ++span) add(turn, span);
  }

  const std::vector<Item>& items(std::size_t span) const { return items_[span]; }

  Reliability reliability(std::size_t span, int turn = -1) const {
    std::vector<double> first, second;
    for (const Item& item : items_[span]) {
      if (turn >= 0 && item.turn->turn != turn) continue;
      first.push_back(item.first);
      second.push_back(item.second);
    }
    return reliability_of(first, second);
  }

  CreditAgreement agreement(const MethodCredit& method, std::size_t span, int turn = -1) const {
    ComparedCredit pairs;
    for (const Item& item : items_[span])
      if (turn < 0 || item.turn->turn == turn)
        pairs.add(mean_credit(method.table[item.turn->trajectory], item.begin, item.end), item.advantage, item.error,
                  found_.all[item.turn->trajectory].group_index);
    return agreement_of(pairs, reliability(span, turn), found_.seed);
  }

  int depth() const {
    int deepest = 0;
    for (const Item& item : items_[0]) deepest = std::max(deepest, item.turn->turn + 1);
    return deepest;
  }

 private:
  void add(const OracleTurn& turn, std::size_t span) {
    if (span > 0 && turn.inside < 0) return;
    const auto part = [&](OracleHalf half) { return part_of(advantage_of(turn, found_.values, half), span); };
    const Trajectory& one = found_.all[turn.trajectory];
    const int begin = one.sampled_begin(turn.turn), border = begin + turn.thought;
    const Item item{.turn = &turn,
                    .begin = span == 2 ? border : begin,
                    .end = span == 1 ? border : one.sampled_end(turn.turn),
                    .advantage = part(OracleHalf::Both),
                    .first = part(OracleHalf::First),
                    .second = part(OracleHalf::Second),
                    .error = error_of(turn, found_.values, span)};
    if (std::isfinite(item.first) && std::isfinite(item.second)) items_[span].push_back(item);
  }

  const OracleFindings& found_;
  std::array<std::vector<Item>, kSpans.size()> items_{};
};

std::vector<Cell> cells(const CreditAgreement& a) {
  const auto share = a.clear > 0 ? static_cast<double>(a.right) / static_cast<double>(a.clear) : kUnknown;
  return {a.pearson.value_or(kUnknown),
          a.interval ? a.interval->low : kUnknown,
          a.interval ? a.interval->high : kUnknown,
          a.corrected.value_or(kUnknown),
          a.spearman.value_or(kUnknown),
          share,
          static_cast<double>(a.clear),
          static_cast<double>(a.pairs)};
}

Table agreement_table(std::string name, std::vector<std::string> first) {
  Table table{.name = std::move(name), .columns = std::move(first)};
  for (const char* column :
       {"Pearson", "low", "high", "Pearson, corrected", "Spearman", "right sign", "clear", "pairs"})
    table.columns.emplace_back(column);
  return table;
}

void add_agreement(Table& table, std::vector<Cell> first, const CreditAgreement& agreement) {
  for (Cell& cell : cells(agreement)) first.push_back(std::move(cell));
  table.add_row(std::move(first));
}

std::string correlation_words(const CreditAgreement& a) {
  if (!a.pearson) return "no correlation (constant)";
  std::string text = number_text(*a.pearson);
  if (a.interval) text += " [" + number_text(a.interval->low) + ", " + number_text(a.interval->high) + "]";
  if (a.corrected) text += ", corrected " + number_text(*a.corrected);
  return text + ", right sign " + share_text(a.right, a.clear);
}

void add_methods(const Oracle& oracle, const OracleFindings& found, AnalysisReport& report) {
  Table methods = agreement_table("methods", {"method"}), by_turn = agreement_table("by turn", {"method", "turn"}),
        by_span = agreement_table("by span", {"method", "span"});
  for (const MethodCredit& method : found.credits.methods) {
    const CreditAgreement agreement = oracle.agreement(method, 0);
    report.find(method.name + ": Pearson of credit and advantage of turns", "-", correlation_words(agreement));
    add_agreement(methods, {method.name}, agreement);
    for (int turn = 0; turn < oracle.depth(); ++turn)
      add_agreement(by_turn, {method.name, turn + 1.0}, oracle.agreement(method, 0, turn));
    for (const std::size_t span : {1, 2})
      if (!oracle.items(span).empty())
        add_agreement(by_span, {method.name, kSpans[span]}, oracle.agreement(method, span));
  }
  report.tables = {std::move(methods), std::move(by_turn), std::move(by_span)};
}

void add_signal(const Oracle& oracle, AnalysisReport& report) {
  Table signal{.name = "signal", .columns = {"span", "turn", "reliability", "deviation of true advantages", "pairs"}};
  for (std::size_t span = 0; span < kSpans.size(); ++span) {
    if (oracle.items(span).empty()) continue;
    const Reliability all = oracle.reliability(span);
    report.find("reliability of advantages, " + std::string(kSpans[span]), "-",
                (all.value ? number_text(*all.value) : "none") + ", deviation of the true ones " +
                    number_text(all.signal_deviation) + ", n = " + std::to_string(all.count));
    for (int turn = 0; turn < oracle.depth(); ++turn) {
      const Reliability one = oracle.reliability(span, turn);
      signal.add(kSpans[span], turn + 1, one.value.value_or(kUnknown), one.signal_deviation, one.count);
    }
  }
  report.tables.push_back(std::move(signal));
}

void add_turns(const Oracle& oracle, const OracleFindings& found, AnalysisReport& report) {
  Table turns{.name = "turns",
              .columns = {"task", "trajectory", "turn", "score", "value before", "value after", "advantage",
                          "standard error", "first half", "second half", "thought", "action"}};
  for (const MethodCredit& method : found.credits.methods) turns.columns.push_back(method.name);
  for (const Item& item : oracle.items(0)) {
    const OracleTurn& turn = *item.turn;
    const Trajectory& one = found.all[turn.trajectory];
    const OracleAdvantage advantage = advantage_of(turn, found.values);
    const double after = turn.after < 0 ? turn.score : found.values[turn.after].mean;
    std::vector<Cell> row{one.group->uid,
                          one.leaf().trajectory_id,
                          turn.turn + 1.0,
                          turn.score,
                          found.values[turn.before].mean,
                          after,
                          item.advantage,
                          item.error,
                          item.first,
                          item.second,
                          advantage.thought,
                          advantage.action};
    for (const MethodCredit& method : found.credits.methods)
      row.emplace_back(mean_credit(method.table[turn.trajectory], item.begin, item.end));
    turns.add_row(std::move(row));
  }
  Table states{.name = "states",
               .columns = {"trajectory", "turn", "tokens of the response", "value", "low", "high", "continuations"}};
  for (std::size_t s = 0; s < found.plan.states.size(); ++s) {
    const OracleState& state = found.plan.states[s];
    const StateValue& value = found.values[s];
    states.add(found.all[state.trajectory].leaf().trajectory_id, state.turn + 1, state.begun, value.mean,
               value.interval.low, value.interval.high, value.count);
  }
  report.tables.push_back(std::move(turns));
  report.tables.push_back(std::move(states));
}

std::vector<Figure> figures() {
  const Axis correlation{.label = "Pearson with the true advantage", .low = -1, .high = 1};
  return {{.title = "Each method's credit against the true advantages of turns",
           .caption = "Pearson's correlation, with 95 % intervals over bootstrapped tasks.",
           .table = "methods",
           .draw = Draw::Intervals,
           .x = "method",
           .y = {"Pearson"},
           .low = "low",
           .high = "high",
           .y_axis = correlation,
           .mark = 0},
          {.title = "By turn",
           .table = "by turn",
           .x = "turn",
           .y = {"Pearson"},
           .series = {"method"},
           .y_axis = correlation},
          {.title = "Thoughts and actions",
           .table = "by span",
           .draw = Draw::Bars,
           .x = "method",
           .y = {"Pearson"},
           .series = {"span"},
           .low = "low",
           .high = "high",
           .y_axis = correlation},
          {.title = "Where the signal is",
           .caption = "Standard deviation of the true advantages, without the noise of their estimates.",
           .table = "signal",
           .x = "turn",
           .y = {"deviation of true advantages"},
           .series = {"span"}},
          {.title = "Advantages of turns by one half of the continuations and by the other",
           .table = "turns",
           .draw = Draw::Points,
           .x = "first half",
           .y = {"second half"}}};
}

}  // namespace

AnalysisReport oracle_report(const OracleFindings& found) {
  const Oracle oracle(found);
  AnalysisReport report;
  add_methods(oracle, found, report);
  add_signal(oracle, report);
  add_turns(oracle, found, report);
  report.figures = figures();
  if (oracle.items(1).empty()) std::erase_if(report.figures, [](const Figure& f) { return f.table == "by span"; });
  report.notes = {
      "The advantage of a turn is the mean score of continuations after it minus that before it; a method's credit of "
      "a "
      "turn is the mean of advantage times weight over its tokens.",
      "Corrected: divided by the root of the reliability (split-half, Spearman-Brown). Right sign: of turns whose "
      "advantage is more than two standard errors from 0."};
  for (const std::string& method : found.credits.left_out) report.notes.push_back("Left out: " + method);
  return report;
}

}  // namespace carnot
