// study/aepo_clip.cpp -- AEPO: which tokens the clip takes the gradient from, by entropy, arXiv:2510.14545
#include <algorithm>
#include <cmath>

#include "carnot/chart/bar_chart.h"
#include "carnot/chart/scale.h"
#include "carnot/study/distribution.h"
#include "carnot/study/entries.h"
#include "carnot/study/rollout_steps.h"
#include "carnot/study/text.h"
#include "carnot/study/token_clip.h"

namespace carnot {
namespace {

/// Tokens of similar entropy.
struct EntropyBin {
  double tokens = 0;
  double low = INFINITY, high = -INFINITY;  ///< nats
  double above = 0;                         ///< clipped from above (A > 0)
  double below = 0;                         ///< clipped from below (A < 0)
  double plain = 0;                         ///< gradient mass |A slope| where clipped tokens have none
  double preserved = 0;                     ///< with AEPO's rule

  /// Of the mass with AEPO's rule, what the plain clip takes away.
  double saved() const { return preserved > 0 ? (preserved - plain) / preserved : 0; }
  void add(const EntropyBin& other);
};

void EntropyBin::add(const EntropyBin& other) {
  tokens += other.tokens;
  low = std::min(low, other.low);
  high = std::max(high, other.high);
  above += other.above;
  below += other.below;
  plain += other.plain;
  preserved += other.preserved;
}

class AepoClip final : public Analysis {
 public:
  void fields(FieldVisitor& visit) override {
    range_.fields(visit);
    visit.field("bins", bins_, "of equal numbers of tokens, by entropy", at_least(1));
    visit.field("clip_low", objective_.clip_low, "the ratio is kept above 1 - clip_low", at_least(0));
    visit.field("clip_high", objective_.clip_high, "and below 1 + clip_high", at_least(0));
  }

  Result<AnalysisReport> run(const AnalysisInput& input) const override {
    std::vector<double> entropies;
    std::vector<ClipInput> tokens;
    const auto runs = visit_rollouts(input.paths, range_, [&](const StudiedStep& step) -> Status {
      const Status columns = require_columns(step, {Column::LogProbOld, Column::LogProbCurrent, Column::EntropyOld});
      if (!columns) return columns;
      if (const Status status = require_credit(step); !status) return status;
      for (const int i : step.counting) add_tokens(step, i, entropies, tokens);
      return Done{};
    });
    if (!runs) return runs.error();
    return report_of(bins_of(entropies, tokens));
  }

 private:
  static void add_tokens(const StudiedStep& step, std::size_t i, std::vector<double>& entropies,
                         std::vector<ClipInput>& tokens) {
    const Trajectory& one = step.all[i];
    const Credit& credit = step.file.credit[i];
    const std::vector<double> current = one.column(Column::LogProbCurrent), old = one.column(Column::LogProbOld);
    const std::vector<double> entropy = one.column(Column::EntropyOld);
    for (int k = 0; k < one.num_turns(); ++k)
      for (int t = one.sampled_begin(k); t < one.sampled_end(k); ++t) {
        const auto at = static_cast<std::size_t>(t);
        entropies.push_back(entropy[at]);
        tokens.push_back({.log_ratio = current[at] - old[at], .advantage = credit.advantage[at]});
      }
  }

  std::vector<EntropyBin> bins_of(const std::vector<double>& entropies, const std::vector<ClipInput>& tokens) const {
    ObjectiveOptions preserving = objective_;
    preserving.clip_gradient = ClipGradient::Preserve;
    const std::vector<TokenClip> plain = token_clips(tokens, objective_), preserved = token_clips(tokens, preserving);
    const std::vector<int> bin = quantile_bins(entropies, bins_);
    std::vector<EntropyBin> bins(bins_);
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      const double size = std::abs(tokens[t].advantage);
      const bool above = plain[t].clipped && tokens[t].advantage > 0;
      const bool below = plain[t].clipped && tokens[t].advantage < 0;
      bins[bin[t]].add({.tokens = 1,
                        .low = entropies[t],
                        .high = entropies[t],
                        .above = above ? 1.0 : 0.0,
                        .below = below ? 1.0 : 0.0,
                        .plain = size * plain[t].slope,
                        .preserved = size * preserved[t].slope});
    }
    std::erase_if(bins, [](const EntropyBin& one) { return one.tokens == 0; });
    return bins;
  }

  static AnalysisReport report_of(const std::vector<EntropyBin>& bins) {
    AnalysisReport report;
    ResultTable table{.name = "by entropy",
                      .columns = {"entropy from", "to", "tokens", "clipped from above", "clipped from below",
                                  "gradient mass, plain", "gradient mass, preserved", "saved by AEPO"}};
    BarChart clipped{.title = "Tokens that the clip holds, by entropy",
                     .x_label = "entropy up to, nats",
                     .y = {.label = "share of tokens", .low = 0, .percent = true},
                     .series = {{.name = "from above, A > 0"}, {.name = "from below, A < 0"}}};
    BarChart saved{.title = "Gradient mass that only AEPO's rule keeps",
                   .x_label = "entropy up to, nats",
                   .y = {.label = "share of the bin's mass", .low = 0, .percent = true},
                   .series = {{.name = ""}}};
    EntropyBin all;
    for (const EntropyBin& bin : bins) {
      all.add(bin);
      table.rows.push_back({bin.low, bin.high, bin.tokens, bin.above / bin.tokens, bin.below / bin.tokens, bin.plain,
                            bin.preserved, bin.saved()});
      clipped.categories.push_back(number_text(bin.high));
      clipped.series[0].values.push_back(bin.above / bin.tokens);
      clipped.series[1].values.push_back(bin.below / bin.tokens);
      saved.categories.push_back(number_text(bin.high));
      saved.series[0].values.push_back(bin.saved());
    }
    const EntropyBin& top = bins.back();
    report.findings = {
        {"tokens clipped from above", "-",
         share_text(static_cast<std::int64_t>(all.above), static_cast<std::int64_t>(all.tokens))},
        {"tokens clipped from below", "-",
         share_text(static_cast<std::int64_t>(all.below), static_cast<std::int64_t>(all.tokens))},
        {"of all tokens clipped from above, in the bin of highest entropy", "most (figure)",
         share_text(static_cast<std::int64_t>(top.above), static_cast<std::int64_t>(all.above))},
        {"gradient mass that only the preserving rule keeps: all tokens", "-", percent_text(all.saved())},
        {"... tokens of highest entropy", "-", percent_text(top.saved())}};
    report.figures = {{svg(clipped), "Bins of equal numbers of tokens."}, {svg(saved), ""}};
    report.tables.push_back(std::move(table));
    report.notes = {
        "Ratios are those at the token's own update: in the first optimizer step of a training step they are 1, so "
        "more mini-batches or epochs show more clipping. Tokens of one entropy share a bin."};
    return report;
  }

  StepRange range_{};
  int bins_ = 10;
  ObjectiveOptions objective_{.clip_low = 0.2, .clip_high = 0.28};
};

}  // namespace

AnalysisEntry aepo_clip_entry() {
  return {.name = "aepo-clip",
          .paper = "2510.14545",
          .needs = AnalysisNeeds::Rollouts,
          .summary = "by entropy: share of tokens clipped, and of gradient that the preserving rule keeps",
          .make = make_analysis<AepoClip>};
}

}  // namespace carnot
