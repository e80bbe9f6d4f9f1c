// study/actfocus_weights.cpp -- ActFocus: share of action tokens, and of the gradient they carry, arXiv:2605.14558
#include <cmath>
#include <map>

#include "carnot/chart/bar_chart.h"
#include "carnot/chart/scale.h"
#include "carnot/credit/span_weight.h"
#include "carnot/study/entries.h"
#include "carnot/study/rollout_steps.h"
#include "carnot/study/text.h"

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

class ActfocusWeights final : public Analysis {
 public:
  void fields(FieldVisitor& visit) override {
    range_.fields(visit);
    visit.field("alphas", alphas_, "weights of think tokens that are tried", at_least(0));
    visit.field("betas", betas_, "swings of action tokens that are tried", at_least(0));
  }

  Result<AnalysisReport> run(const AnalysisInput& input) const override {
    std::map<std::string, TokenCounts> by_environment;
    std::vector<Setting> settings;
    for (const double beta : betas_)
      for (const double alpha : alphas_) settings.push_back({.alpha = alpha, .beta = beta});
    const auto runs = visit_rollouts(input.paths, range_, [&](const StudiedStep& step) -> Status {
      if (const Status status = require_columns(step, {Column::EnergyReference}); !status) return status;
      if (const Status status = require_credit(step); !status) return status;
      count_tokens(step, by_environment[step.run.environment]);
      for (Setting& setting : settings) add_mass(step, setting);
      return Done{};
    });
    if (!runs) return runs.error();
    return report_of(by_environment, settings);
  }

 private:
  static void count_tokens(const StudiedStep& step, TokenCounts& counts) {
    for (const int i : step.counting) {
      const Trajectory& one = step.all[i];
      counts.action +=
          static_cast<std::int64_t>(sampled_values(one, Column::EnergyReference, SampledKind::Action).size());
      counts.all += one.num_sampled();
    }
  }

  static void add_mass(const StudiedStep& step, Setting& setting) {
    const CreditTable table =
        run_credit(std::vector{span_weight({.alpha = setting.alpha, .beta = setting.beta})}, step.all);
    for (const int i : step.counting) {
      const auto at = static_cast<std::size_t>(i);
      const std::vector<bool> sampled = step.all[at].sampled();
      const std::vector<SpanKind> kinds = step.all[at].kinds();
      for (std::size_t t = 0; t < sampled.size(); ++t) {
        if (!sampled[t]) continue;
        const double mass = std::abs(table[at].weight[t] * step.file.credit[at].advantage[t]);
        (kinds[t] == SpanKind::Action ? setting.action : setting.think) += mass;
      }
    }
  }

  static AnalysisReport report_of(const std::map<std::string, TokenCounts>& by_environment,
                                  const std::vector<Setting>& settings) {
    AnalysisReport report;
    ResultTable shares{.name = "action tokens", .columns = {"environment", "action tokens", "sampled tokens", "share"}};
    for (const auto& [environment, counts] : by_environment) {
      shares.rows.push_back({environment, static_cast<double>(counts.action), static_cast<double>(counts.all),
                             static_cast<double>(counts.action) / static_cast<double>(counts.all)});
      report.findings.push_back({"action tokens among sampled ones, " + environment,
                                 "below 16 %; about 4 % (Sokoban, 3B)", share_text(counts.action, counts.all)});
    }
    ResultTable masses{.name = "gradient mass",
                       .columns = {"alpha", "beta", "think", "action", "share of action tokens"}};
    BarChart bars{.title = "Share of the gradient's mass on action tokens",
                  .x_label = "alpha",
                  .y = {.label = "share", .low = 0, .high = 1, .percent = true}};
    for (const Setting& one : settings) {
      masses.rows.push_back({one.alpha, one.beta, one.think, one.action, one.action_share()});
      const std::string series = "beta " + number_text(one.beta);
      if (bars.series.empty() || bars.series.back().name != series) bars.series.push_back({.name = series});
      bars.series.back().values.push_back(one.action_share());
      if (bars.series.size() == 1) bars.categories.push_back(number_text(one.alpha));
      report.findings.push_back(
          {"gradient mass on action tokens, alpha " + number_text(one.alpha) + ", beta " + number_text(one.beta),
           one.alpha == 0.1 && one.beta == 0.5 ? "the paper's setting" : "-", percent_text(one.action_share())});
    }
    report.figures = {
        {svg(bars),
         "Mass: sum of |weight x advantage|; at equal weights (alpha 1, beta 0) it is what the base gives."}};
    report.tables = {std::move(shares), std::move(masses)};
    report.notes = {
        "Mass is taken before clipping: the policy that sampled is the one that is updated.",
        "How success follows alpha and beta: train runs that differ in method.actfocus.* and use actfocus-sweep."};
    return report;
  }

  StepRange range_{};
  std::vector<double> alphas_{0, 0.1, 0.3, 0.5, 1};
  std::vector<double> betas_{0, 0.5, 1};
};

}  // namespace

AnalysisEntry actfocus_weights_entry() {
  return {.name = "actfocus-weights",
          .paper = "2605.14558",
          .needs = AnalysisNeeds::Rollouts,
          .summary = "share of action tokens, and of the gradient they carry for values of alpha and beta",
          .make = make_analysis<ActfocusWeights>};
}

}  // namespace carnot
