// studies/a2tgpo_clip.cpp -- A2TGPO: how wide the clip range of a turn is, and which turns it holds, arXiv:2605.06200
#include "carnot/core/config/numbers.h"
#include "carnot/core/train/recipe.h"
#include "carnot/studies/distribution.h"
#include "carnot/studies/entries.h"
#include "carnot/studies/estimate.h"
#include "carnot/studies/rollout_analysis.h"
#include "carnot/studies/token_clip.h"

namespace carnot {
namespace {

struct HeldTurns {
  std::int64_t held = 0;  ///< by the clip range
  std::int64_t all = 0;
};

/// A2TGPO with one clip swing.
struct Swing {
  double beta = 0;
  Method method{};
  ByTurn scale{};
  std::map<int, HeldTurns> held{};  ///< by turn, from 1
};

class A2tgpoClip final : public RolloutAnalysis {
 public:
  A2tgpoClip() : RolloutAnalysis({.columns = {Column::LogProbOld, Column::LogProbCurrent}, .info_gain = true}) {}

 private:
  void options(FieldVisitor& visit) override {
    visit.field("betas", betas_, "clip swings that are tried on the same rollouts", between(0, 1));
    visit.field("clip_low", clip_low_, "the turn's ratio is kept above 1 - clip_low c; 0: the method's", at_least(0));
    visit.field("clip_high", clip_high_, "and below 1 + clip_high c; 0: the method's", at_least(0));
  }

  void add(const StudiedStep& step) override {
    if (swings_.empty())
      for (const double beta : betas_) swings_.push_back(swing_of(beta));
    for (Swing& swing : swings_) add_step(step, swing);
  }

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
    for_each_turn(step, [&](int i, const Trajectory& one, int k) {
      const int begin = one.sampled_begin(k);
      const Credit& credit = table[i];
      const std::vector<double> current = one.column(Column::LogProbCurrent), old = one.column(Column::LogProbOld);
      double log_ratio = 0;
      for (int t = begin; t < one.sampled_end(k); ++t) log_ratio += current[t] - old[t];
      if (one.turn(k).info_gain) swing.scale[k + 1].push_back(credit.clip_scale[begin]);
      turns.push_back(k + 1);
      inputs.push_back({.log_ratio = log_ratio / one.turn(k).num_sampled(),
                        .advantage = credit.advantage[begin],
                        .clip_scale = credit.clip_scale[begin]});
    });
    const std::vector<TokenClip> clips = token_clips(inputs, swing.method.objective);
    for (std::size_t t = 0; t < clips.size(); ++t) {
      HeldTurns& counts = swing.held[turns[t]];
      counts.held += clips[t].clipped ? 1 : 0;
      ++counts.all;
    }
  }

  Result<AnalysisReport> report(const AnalysisInput&) const override {
    AnalysisReport report;
    Table scale = table_by_turn("clip scale by turn", "beta");
    Table held{.name = "turns held by turn", .columns = {"beta", "turn", "held", "turns", "share"}};
    for (const Swing& swing : swings_) {
      const std::string beta = number_text(swing.beta);
      add_by_turn(scale, beta, swing.scale);
      HeldTurns sum;
      for (const auto& [turn, counts] : swing.held) {
        held.add(beta, turn, counts.held, counts.all,
                 static_cast<double>(counts.held) / static_cast<double>(counts.all));
        sum.held += counts.held;
        sum.all += counts.all;
      }
      report.find("beta " + beta + ": turns held by the clip range",
                  swing.beta == 0.3 ? "best results of the sweep" : "-", share_text(sum.held, sum.all));
    }
    report.tables = {std::move(scale), std::move(held)};
    report.figures = {{.title = "Clip scale c by turn",
                       .caption = "Turns with a gain; mean and one deviation to both sides, by beta.",
                       .table = "clip scale by turn",
                       .x = "turn",
                       .y = {"mean"},
                       .series = {"beta"},
                       .spread = "deviation",
                       .y_axis = {.label = "c"}},
                      {.title = "Turns whose ratio the clip range holds",
                       .table = "turns held by turn",
                       .draw = Draw::Bars,
                       .x = "turn",
                       .y = {"share"},
                       .series = {"beta"},
                       .y_axis = share_axis("share of turns")}};
    report.notes = {
        "Credit is A2TGPO's on every run's rollouts. Ratios are those at the token's own update: in the first "
        "optimizer step of a training step they are 1, so more mini-batches or epochs show more clipping.",
        "How success follows beta: train runs that differ in method.a2tgpo.clip_swing and use a2tgpo-sweep."};
    return report;
  }

  std::vector<double> betas_{0, 0.1, 0.3, 0.5};
  double clip_low_ = 0;
  double clip_high_ = 0;
  std::vector<Swing> swings_{};
};

}  // namespace

std::unique_ptr<Analysis> a2tgpo_clip() { return std::make_unique<A2tgpoClip>(); }

}  // namespace carnot
