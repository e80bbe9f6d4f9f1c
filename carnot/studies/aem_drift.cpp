// studies/aem_drift.cpp -- AEM: the entropy under training without some of the responses, arXiv:2605.00425
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

/// The number whose sign decides which responses the loss leaves out.
enum class SignOf { Drift, Advantage };

struct Arm {
  int dropped;  ///< responses whose number has this sign; 0: none
  SignOf sign;
  bool modulate;  ///< multiply advantages by alpha first
  std::string_view name;
  std::string_view paper;
};
/// Figure 3.
constexpr std::array<Arm, 3> kMasks = {
    {{0, SignOf::Drift, false, "all responses", "-"},
     {+1, SignOf::Drift, false, "without A (alpha - 1) > 0", "higher than with all"},
     {-1, SignOf::Drift, false, "without A (alpha - 1) < 0", "lower than with all"}}};
/// Equations 15 to 18: what AEM adds, on failures and on successes alone.
constexpr std::array<Arm, 4> kSigns = {{{+1, SignOf::Advantage, false, "A < 0", "-"},
                                        {+1, SignOf::Advantage, true, "A < 0, with AEM", "higher than without"},
                                        {-1, SignOf::Advantage, false, "A > 0", "-"},
                                        {-1, SignOf::Advantage, true, "A > 0, with AEM", "lower than without"}}};

/// A last rule of the chain: responses whose A (alpha - 1), or A, has this sign get weight 0.
CreditRule drop_by_sign(int dropped, SignOf sign, const EntropyModulateOptions& options) {
  const auto apply = [dropped, sign, options](std::span<const Trajectory> trajectories, CreditTable& table) {
    CreditTable factors = fresh_credit(trajectories);
    for (Credit& credit : factors) credit.advantage.assign(credit.advantage.size(), 1);
    entropy_modulate(options).apply(trajectories, factors);
    for (std::size_t i = 0; i < trajectories.size(); ++i)
      for (int k = 0; k < trajectories[i].num_turns(); ++k) {
        if (trajectories[i].turn(k).num_sampled() == 0) continue;
        const auto first = static_cast<std::size_t>(trajectories[i].sampled_begin(k));
        const double factor = sign == SignOf::Drift ? factors[i].advantage[first] - 1 : 1;
        if (dropped * table[i].advantage[first] * factor <= 0) continue;
        for (double& weight : sampled_part(table[i].weight, trajectories[i], k)) weight = 0;
      }
  };
  return {.name = "drop_by_sign", .apply = apply, .columns = {Column::EntropyOld}};
}

class AemDrift final : public Analysis {
 public:
  void fields(FieldVisitor& visit) override {
    visit.field("steps", steps_, "training steps of each arm", at_least(1));
    enum_field(visit, "arms", arms_, {"masks", "signs"},
               "masks: without responses of one sign of A (alpha - 1); signs: failures or successes alone, with and "
               "without AEM");
    section(visit, "aem", modulate_, "the factors alpha");
  }

  Result<AnalysisReport> run(const AnalysisInput& input) override {
    AnalysisReport report;
    Table table{.name = "by step", .columns = {"arm", "step", "entropy", "success", "share of tokens in the loss"}};
    for (const Arm& arm : arms_ == Arms::Masks ? std::span<const Arm>(kMasks) : kSigns) {
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
    if (arm.modulate) recipe.method.credit.push_back(entropy_modulate(modulate_));
    if (arm.dropped != 0) recipe.method.credit.push_back(drop_by_sign(arm.dropped, arm.sign, modulate_));
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

  enum class Arms { Masks, Signs };

  int steps_ = 50;
  Arms arms_ = Arms::Masks;
  EntropyModulateOptions modulate_{};
};

}  // namespace

std::unique_ptr<Analysis> aem_drift() { return std::make_unique<AemDrift>(); }

}  // namespace carnot
