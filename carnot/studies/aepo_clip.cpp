// studies/aepo_clip.cpp -- AEPO: which tokens the clip takes the gradient from, by entropy, arXiv:2510.14545
#include <algorithm>
#include <cmath>

#include "carnot/studies/distribution.h"
#include "carnot/studies/entries.h"
#include "carnot/studies/estimate.h"
#include "carnot/studies/rollout_analysis.h"
#include "carnot/studies/token_clip.h"

namespace carnot {
namespace {

/// Tokens of similar entropy.
struct EntropyBin {
  std::int64_t tokens = 0;
  double low = INFINITY, high = -INFINITY;  ///< nats
  std::int64_t above = 0;                   ///< clipped from above (A > 0)
  std::int64_t below = 0;                   ///< clipped from below (A < 0)
  double plain = 0;                         ///< gradient mass |A slope| where clipped tokens have none
  double preserved = 0;                     ///< with AEPO's rule

  /// Of the mass with AEPO's rule, what the plain clip takes away.
  double saved() const { return preserved > 0 ? (preserved - plain) / preserved : 0; }
  double share(std::int64_t part) const { return static_cast<double>(part) / static_cast<double>(tokens); }
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

Figure bars_by_entropy(std::string title, std::string label, std::vector<std::string> columns) {
  return {.title = std::move(title),
          .caption = "Bins of equal numbers of tokens.",
          .table = "by entropy",
          .draw = Draw::Bars,
          .x = "to",
          .y = std::move(columns),
          .x_axis = {.label = "entropy up to, nats"},
          .y_axis = share_axis(std::move(label))};
}

class AepoClip final : public RolloutAnalysis {
 public:
  AepoClip()
      : RolloutAnalysis({.columns = {Column::LogProbOld, Column::LogProbCurrent, Column::EntropyOld}, .credit = true}) {
  }

 private:
  void options(FieldVisitor& visit) override {
    visit.field("bins", bins_, "of equal numbers of tokens, by entropy", at_least(1));
    visit.field("clip_low", objective_.clip_low, "the ratio is kept above 1 - clip_low", at_least(0));
    visit.field("clip_high", objective_.clip_high, "and below 1 + clip_high", at_least(0));
  }

  void add(const StudiedStep& step) override {
    for_each_turn(step, [&](int i, const Trajectory& one, int k) {
      const std::vector<double> current = one.column(Column::LogProbCurrent), old = one.column(Column::LogProbOld);
      const std::vector<double> entropy = one.column(Column::EntropyOld);
      for (int t = one.sampled_begin(k); t < one.sampled_end(k); ++t) {
        entropies_.push_back(entropy[t]);
        tokens_.push_back({.log_ratio = current[t] - old[t], .advantage = step.file.credit[i].advantage[t]});
      }
    });
  }

  std::vector<EntropyBin> bins() const {
    ObjectiveOptions preserving = objective_;
    preserving.clip_gradient = ClipGradient::Preserve;
    const std::vector<TokenClip> plain = token_clips(tokens_, objective_), preserved = token_clips(tokens_, preserving);
    const std::vector<int> bin = quantile_bins(entropies_, bins_);
    std::vector<EntropyBin> bins(bins_);
    for (std::size_t t = 0; t < tokens_.size(); ++t) {
      const double advantage = tokens_[t].advantage;
      bins[bin[t]].add({.tokens = 1,
                        .low = entropies_[t],
                        .high = entropies_[t],
                        .above = plain[t].clipped && advantage > 0 ? 1 : 0,
                        .below = plain[t].clipped && advantage < 0 ? 1 : 0,
                        .plain = std::abs(advantage) * plain[t].slope,
                        .preserved = std::abs(advantage) * preserved[t].slope});
    }
    std::erase_if(bins, [](const EntropyBin& one) { return one.tokens == 0; });
    return bins;
  }

  Result<AnalysisReport> report(const AnalysisInput&) const override {
    AnalysisReport report;
    Table table{.name = "by entropy",
                .columns = {"entropy from", "to", "tokens", "clipped from above", "clipped from below",
                            "gradient mass, plain", "gradient mass, preserved", "saved by AEPO"}};
    EntropyBin all, top;
    for (const EntropyBin& bin : bins()) {
      all.add(bin);
      top = bin;
      table.add(bin.low, bin.high, bin.tokens, bin.share(bin.above), bin.share(bin.below), bin.plain, bin.preserved,
                bin.saved());
    }
    report.findings = {
        {"tokens clipped from above", "-", share_text(all.above, all.tokens)},
        {"tokens clipped from below", "-", share_text(all.below, all.tokens)},
        {"of all tokens clipped from above, in the bin of highest entropy", "most (figure)",
         share_text(top.above, all.above)},
        {"gradient mass that only the preserving rule keeps: all tokens", "-", percent_text(all.saved())},
        {"... tokens of highest entropy", "-", percent_text(top.saved())}};
    report.tables = {std::move(table)};
    report.figures = {
        bars_by_entropy("Tokens that the clip holds, by entropy: from above (A > 0), from below (A < 0)",
                        "share of tokens", {"clipped from above", "clipped from below"}),
        bars_by_entropy("Gradient mass that only AEPO's rule keeps", "share of the bin's mass", {"saved by AEPO"})};
    report.notes = {
        "Ratios are those at the token's own update: in the first optimizer step of a training step they are 1, so "
        "more mini-batches or epochs show more clipping. Tokens of one entropy share a bin."};
    return report;
  }

  int bins_ = 10;
  ObjectiveOptions objective_{.clip_low = 0.2, .clip_high = 0.28};
  std::vector<double> entropies_{};
  std::vector<ClipInput> tokens_{};
};

}  // namespace

std::unique_ptr<Analysis> aepo_clip() { return std::make_unique<AepoClip>(); }

}  // namespace carnot
