// studies/actfocus_weights.cpp -- ActFocus: share of action tokens, and of the gradient they carry, arXiv:2605.14558
#include <cmath>
#include <map>

#include "carnot/core/credit/span_weight.h"
#include "carnot/studies/entries.h"
#include "carnot/studies/estimate.h"
#include "carnot/studies/rollout_analysis.h"

namespace carnot {
namespace {

/// Sampled tokens of one environment.
struct TokenCounts {
  std::int64_t action = 0;
  std::int64_t all = 0;
};

/// One pair of weights: |weight x advantage| over tokens, by kind.
struct Setting {
  double alpha = 0, beta = 0;
  double think = 0, action = 0;

  double action_share() const { return action / (think + action); }
};

class ActfocusWeights final : public RolloutAnalysis {
 public:
  ActfocusWeights() : RolloutAnalysis({.columns = {Column::EnergyReference}, .credit = true}) {}

 private:
  void options(FieldVisitor& visit) override {
    visit.field("alphas", alphas_, "weights of think tokens that are tried", at_least(0));
    visit.field("betas", betas_, "swings of action tokens that are tried", at_least(0));
  }

  void add(const StudiedStep& step) override {
    if (settings_.empty())
      for (const double beta : betas_)
        for (const double alpha : alphas_) settings_.push_back({.alpha = alpha, .beta = beta});
    TokenCounts& counts = counts_[step.run.environment];
    for (const int i : step.counting) {
      const Trajectory& one = step.all[i];
      counts.action += std::ssize(sampled_values(one, Column::EnergyReference, SampledKind::Action));
      counts.all += one.num_sampled();
    }
    for (Setting& setting : settings_) add_mass(step, setting);
  }

  static void add_mass(const StudiedStep& step, Setting& setting) {
    const CreditTable table =
        run_credit(std::vector{span_weight({.alpha = setting.alpha, .beta = setting.beta})}, step.all);
    for (const int i : step.counting) {
      const std::vector<bool> sampled = step.all[i].sampled();
      const std::vector<SpanKind> kinds = step.all[i].kinds();
      for (std::size_t t = 0; t < sampled.size(); ++t) {
        if (!sampled[t]) continue;
        const double mass = std::abs(table[i].weight[t] * step.file.credit[i].advantage[t]);
        (kinds[t] == SpanKind::Action ? setting.action : setting.think) += mass;
      }
    }
  }

  Result<AnalysisReport> report(const AnalysisInput&) const override {
    AnalysisReport report;
    Table shares{.name = "action tokens", .columns = {"environment", "action tokens", "sampled tokens", "share"}};
    Table masses{.name = "gradient mass", .columns = {"alpha", "beta", "think", "action", "share of action tokens"}};
    for (const auto& [environment, counts] : counts_) {
      shares.add(environment, counts.action, counts.all,
                 static_cast<double>(counts.action) / static_cast<double>(counts.all));
      report.find("action tokens among sampled ones, " + environment, "below 16 %; about 4 % (Sokoban, 3B)",
                  share_text(counts.action, counts.all));
    }
    for (const Setting& one : settings_) {
      masses.add(one.alpha, one.beta, one.think, one.action, one.action_share());
      report.find("gradient mass on action tokens, alpha " + number_text(one.alpha) + ", beta " + number_text(one.beta),
                  one.alpha == 0.1 && one.beta == 0.5 ? "the paper's setting" : "-", percent_text(one.action_share()));
    }
    report.tables = {std::move(shares), std::move(masses)};
    report.figures = {
        {.title = "Share of the gradient's mass on action tokens",
         .caption = "By beta. Mass: sum of |weight x advantage|; at equal weights (alpha 1, beta 0) it is what the "
                    "base gives.",
         .table = "gradient mass",
         .draw = Draw::Bars,
         .x = "alpha",
         .y = {"share of action tokens"},
         .series = {"beta"},
         .y_axis = share_axis("share")}};
    report.notes = {
        "Mass is taken before clipping: the policy that sampled is the one that is updated.",
        "How success follows alpha and beta: train runs that differ in method.actfocus.* and use actfocus-sweep."};
    return report;
  }

  std::vector<double> alphas_{0, 0.1, 0.3, 0.5, 1};
  std::vector<double> betas_{0, 0.5, 1};
  std::map<std::string, TokenCounts> counts_{};
  std::vector<Setting> settings_{};
};

}  // namespace

std::unique_ptr<Analysis> actfocus_weights() { return std::make_unique<ActfocusWeights>(); }

}  // namespace carnot
