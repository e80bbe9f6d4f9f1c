// studies/aem_drift.cpp -- AEM: training without the responses that should lower (raise) the entropy, arXiv:2605.00425
#include <array>

#include "carnot/core/credit/entropy_modulate.h"
#include "carnot/core/credit/rule.h"
#include "carnot/core/run/progress.h"
#include "carnot/core/train/trainer.h"
#include "carnot/studies/entries.h"
#include "carnot/studies/opened_policy.h"
#include "carnot/studies/run_curves.h"

namespace carnot {
namespace {

/// Which responses the loss leaves out, by the sign of A (alpha - 1).
struct Arm {
  int dropped;  ///< 0: none
  std::string_view name;
  std::string_view paper;
};
constexpr std::array<Arm, 3> kArms = {{{0, "all responses", "-"},
                                       {+1, "without A (alpha - 1) > 0", "higher than with all"},
                                       {-1, "without A (alpha - 1) < 0", "lower than with all"}}};

/// A last rule of the chain: responses whose A (alpha - 1) has this sign get weight 0.
CreditRule drop_by_sign(int sign, const EntropyModulateOptions& options) {
  const auto apply = [sign, options](std::span<const Trajectory> trajectories, CreditTable& table) {
    CreditTable factors = fresh_credit(trajectories);
    for (Credit& credit : factors) credit.advantage.assign(credit.advantage.size(), 1);
    entropy_modulate(options).apply(trajectories, factors);
    for (std::size_t i = 0; i < trajectories.size(); ++i)
      for (int k = 0; k < trajectories[i].num_turns(); ++k) {
        if (trajectories[i].turn(k).num_sampled() == 0) continue;
        const auto first = static_cast<std::size_t>(trajectories[i].sampled_begin(k));
        if (sign * table[i].advantage[first] * (factors[i].advantage[first] - 1) <= 0) continue;
        for (double& weight : sampled_part(table[i].weight, trajectories[i], k)) weight = 0;
      }
  };
  return {.name = "drop_by_sign", .apply = apply, .columns = {Column::EntropyOld}};
}

class AemDrift final : public Analysis {
 public:
  void fields(FieldVisitor& visit) override {
    visit.field("steps", steps_, "training steps of each arm", at_least(1));
    section(visit, "aem", modulate_, "the factors alpha");
  }

  Result<AnalysisReport> run(const AnalysisInput& input) override {
    AnalysisReport report;
    Table table{.name = "by step", .columns = {"arm", "step", "entropy", "success", "share of tokens in the loss"}};
    for (const Arm& arm : kArms) {
      CARNOT_ASSIGN_OR_RETURN(const auto entropy, train(input, arm, table));
      report.find(std::string(arm.name) + ": entropy over the last fifth of the steps", std::string(arm.paper),
                  number_text(mean_between(entropy, 0.8, 1)));
    }
    report.tables = {std::move(table)};
    report.figures = {{.title = "Entropy of the policy",
                       .caption = "One training each from the same checkpoint, tasks and draws alike.",
                       .table = "by step",
                       .x = "step",
                       .y = {"entropy"},
                       .series = {"arm"},
                       .x_axis = {.label = "training step"},
                       .y_axis = {.label = "nats per token", .low = 0}}};
    report.notes = {
        "Every response's A and alpha are those of its step; a dropped response leaves numerator and denominator of "
        "the loss. Entropy: the mean over the tokens that the step's rollouts sampled."};
    return report;
  }

 private:
  /// Adds a row per step; returns the entropies.
  Result<Curve> train(const AnalysisInput& input, const Arm& arm, Table& table) const {
    CARNOT_ASSIGN_OR_RETURN(auto opened, open_policy(input.paths.front(), input.overrides));
    Recipe& recipe = opened.recipe;
    recipe.train.steps = steps_;
    if (arm.dropped != 0) recipe.method.credit.push_back(drop_by_sign(arm.dropped, modulate_));
    opened.bundle.add_companions(recipe);
    OneProcess alone;
    Trainer trainer(recipe, opened.bundle, alone);
    Curve entropies;
    Progress progress(input.control.out, {.terminal = input.control.terminal});
    progress.begin(arm.name, steps_);
    for (std::int64_t step = 0; step < steps_; ++step) {
      const auto done = trainer.step(step, {.go_on = [&] { return !input.control.stop_requested(); }});
      if (!done) return Error{"stopped"};
      const auto [entropy, kept] = over_tokens(*done);
      const auto success = done->metrics.find("env/" + recipe.environment_name + "/success");
      table.add(arm.name, step + 1, entropy, success == done->metrics.end() ? 0 : success->second, kept);
      entropies[step + 1] = entropy;
      progress.update(step + 1);
    }
    return entropies;
  }

  /// Mean entropy of the sampled tokens, and the share of them that is in the loss.
  static std::pair<double, double> over_tokens(const TrainingStep& done) {
    double entropy = 0, tokens = 0, kept = 0;
    const std::vector<Trajectory> all = trajectories(done.groups);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!all[i].leaf().is_included()) continue;
      const std::vector<double> values = all[i].column(Column::EntropyOld);
      for (int k = 0; k < all[i].num_turns(); ++k)
        for (int t = all[i].sampled_begin(k); t < all[i].sampled_end(k); ++t) {
          entropy += values[t];
          kept += done.credit[i].weight[t] != 0 ? 1 : 0;
          tokens += 1;
        }
    }
    return tokens > 0 ? std::pair(entropy / tokens, kept / tokens) : std::pair(0.0, 0.0);
  }

  int steps_ = 50;
  EntropyModulateOptions modulate_{};
};

}  // namespace

std::unique_ptr<Analysis> aem_drift() { return std::make_unique<AemDrift>(); }

}  // namespace carnot
