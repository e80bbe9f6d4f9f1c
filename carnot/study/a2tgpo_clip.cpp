// study/a2tgpo_clip.cpp -- A2TGPO: how wide the clip range of a turn is, and which turns it holds, arXiv:2605.06200
#include <cmath>
#include <map>

#include "carnot/chart/bar_chart.h"
#include "carnot/chart/scale.h"
#include "carnot/config/numbers.h"
#include "carnot/study/by_turn.h"
#include "carnot/study/entries.h"
#include "carnot/study/rollout_steps.h"
#include "carnot/study/text.h"
#include "carnot/study/token_clip.h"
#include "carnot/train/recipe.h"

namespace carnot {
namespace {

/// Turns held by the clip range, of all, by turn index from 1.
struct HeldTurns {
  std::map<int, std::pair<std::int64_t, std::int64_t>> by_turn{};

  std::int64_t held() const {
    std::int64_t sum = 0;
    for (const auto& [turn, counts] : by_turn) sum += counts.first;
    return sum;
  }
  std::int64_t all() const {
    std::int64_t sum = 0;
    for (const auto& [turn, counts] : by_turn) sum += counts.second;
    return sum;
  }
};

/// A2TGPO with one clip swing.
struct Swing {
  double beta = 0;
  Method method{};
  ByTurn scale{};
  HeldTurns held{};
};

/// Mean over the turn's sampled tokens of current - old log-probability.
double turn_log_ratio(const std::vector<double>& current, const std::vector<double>& old, const Trajectory& one,
                      int k) {
  double sum = 0;
  for (int t = one.sampled_begin(k); t < one.sampled_end(k); ++t) sum += current[t] - old[t];
  return sum / one.turn(k).num_sampled();
}

class A2tgpoClip final : public Analysis {
 public:
  void fields(FieldVisitor& visit) override {
    range_.fields(visit);
    visit.field("betas", betas_, "clip swings that are tried on the same rollouts", between(0, 1));
    visit.field("clip_low", clip_low_, "the turn's ratio is kept above 1 - clip_low c; 0: the method's", at_least(0));
    visit.field("clip_high", clip_high_, "and below 1 + clip_high c; 0: the method's", at_least(0));
  }

  Result<AnalysisReport> run(const AnalysisInput& input) const override {
    std::vector<Swing> swings;
    for (const double beta : betas_) swings.push_back(swing_of(beta));
    const auto runs = visit_rollouts(input.paths, range_, [&](const StudiedStep& step) -> Status {
      if (const Status status = require_info_gain(step); !status) return status;
      if (const Status status = require_columns(step, {Column::LogProbOld, Column::LogProbCurrent}); !status)
        return status;
      for (Swing& swing : swings) add_step(step, swing);
      return Done{};
    });
    if (!runs) return runs.error();
    return report_of(swings);
  }

 private:
  Swing swing_of(double beta) const {
    const std::string setting = "method.a2tgpo.clip_swing=" + write_number(beta);
    Swing swing{.beta = beta, .method = Recipe::parse("", "a2tgpo", {"method=a2tgpo", setting}).value().method};
    if (clip_low_ > 0) swing.method.objective.clip_low = clip_low_;
    if (clip_high_ > 0) swing.method.objective.clip_high = clip_high_;
    return swing;
  }

  static void add_step(const StudiedStep& step, Swing& swing) {
    const CreditTable table = run_credit(swing.method.credit, step.all);
    std::vector<ClipInput> inputs;
    std::vector<int> turns;
    for (const int i : step.counting) {
      const Trajectory& one = step.all[i];
      const Credit& credit = table[i];
      const std::vector<double> current = one.column(Column::LogProbCurrent), old = one.column(Column::LogProbOld);
      for (int k = 0; k < one.num_turns(); ++k) {
        if (one.turn(k).num_sampled() == 0) continue;
        const auto first = static_cast<std::size_t>(one.sampled_begin(k));
        if (one.turn(k).info_gain) swing.scale.add(k + 1, credit.clip_scale[first]);
        turns.push_back(k + 1);
        inputs.push_back({.log_ratio = turn_log_ratio(current, old, one, k),
                          .advantage = credit.advantage[first],
                          .clip_scale = credit.clip_scale[first]});
      }
    }
    const std::vector<TokenClip> clips = token_clips(inputs, swing.method.objective);
    for (std::size_t t = 0; t < clips.size(); ++t) {
      auto& [held, all] = swing.held.by_turn[turns[t]];
      held += clips[t].clipped ? 1 : 0;
      ++all;
    }
  }

  static AnalysisReport report_of(const std::vector<Swing>& swings) {
    AnalysisReport report;
    ResultTable scale = table_by_turn("clip scale by turn", "beta");
    ResultTable held{.name = "turns held by turn", .columns = {"beta", "turn", "held", "turns", "share"}};
    BarChart bars{.title = "Turns whose ratio the clip range holds",
                  .x_label = "turn",
                  .y = {.label = "share of turns", .low = 0, .percent = true}};
    Plot plot{.title = "Clip scale c by turn", .x = {.label = "turn"}, .y = {.label = "c"}};
    for (const auto& [turn, counts] : swings.front().held.by_turn) bars.categories.push_back(std::to_string(turn));
    for (const Swing& swing : swings) {
      const std::string name = "beta " + number_text(swing.beta);
      swing.scale.add_rows(scale, number_text(swing.beta));
      plot.series.push_back(swing.scale.series(name));
      BarSeries series{.name = name};
      for (const auto& [turn, counts] : swing.held.by_turn) {
        const double share = static_cast<double>(counts.first) / static_cast<double>(counts.second);
        held.rows.push_back({number_text(swing.beta), static_cast<double>(turn), static_cast<double>(counts.first),
                             static_cast<double>(counts.second), share});
        series.values.push_back(share);
      }
      bars.series.push_back(std::move(series));
      report.findings.push_back({name + ": turns held by the clip range",
                                 swing.beta == 0.3 ? "best results of the sweep" : "-",
                                 share_text(swing.held.held(), swing.held.all())});
    }
    report.figures = {{svg(plot), "Turns with a gain; mean and one deviation to both sides."}, {svg(bars), ""}};
    report.tables = {std::move(scale), std::move(held)};
    report.notes = {
        "Credit is A2TGPO's on every run's rollouts. Ratios are those at the token's own update: in the first "
        "optimizer step of a training step they are 1, so more mini-batches or epochs show more clipping.",
        "How success follows beta: train runs that differ in method.a2tgpo.clip_swing and use a2tgpo-sweep."};
    return report;
  }

  StepRange range_{};
  std::vector<double> betas_{0, 0.1, 0.3, 0.5};
  double clip_low_ = 0;
  double clip_high_ = 0;
};

}  // namespace

AnalysisEntry a2tgpo_clip_entry() {
  return {.name = "a2tgpo-clip",
          .paper = "2605.06200",
          .needs = AnalysisNeeds::Rollouts,
          .summary = "width of the adaptive clip range and share of turns that it holds, by turn",
          .make = make_analysis<A2tgpoClip>};
}

}  // namespace carnot
