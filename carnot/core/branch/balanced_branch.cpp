#include "carnot/core/branch/balanced_branch.h"

#include <algorithm>
#include <cmath>

#include "carnot/core/base/statistics.h"

namespace carnot {
namespace {

class BalancedBranch final : public BranchPolicy {
 public:
  explicit BalancedBranch(const BalancedBranchOptions& options) : options_(options) {}

  std::string name() const override { return "balanced_branch"; }
  int initial(int budget) const override { return std::min(options_.initial, budget); }
  bool wants_probe() const override { return options_.probe; }
  int initial(int budget, const EntropyProbe& probe) const override {
    return balanced_budget(budget, probe, options_.probe_slope, options_.form);
  }

  bool branch_here(const BranchContext& at) const override {
    if (at.trajectories >= at.budget) return false;
    const double rise = options_.weight * (at.turn_entropy - at.initial_entropy);
    const double fatigue = 1 - options_.penalty * at.consecutive;
    if (options_.form == BalancedForm::Paper)
      return at.uniform < std::clamp((options_.base + rise) * fatigue, 0.0, 1.0);
    return std::clamp((at.uniform + rise) * std::max(0.0, fatigue), 0.0, 1.0) >= options_.base;
  }

  int attempts() const override { return options_.beam - 1; }
  bool ever_branches() const override { return attempts() > 0; }
  BranchTiming timing() const override { return options_.timing; }
  BranchStreak streak() const override { return options_.streak; }
  TurnEntropyMeasure measure() const override { return options_.measure; }

 private:
  BalancedBranchOptions options_;
};

}  // namespace

void BalancedBranchOptions::fields(FieldVisitor& visit) {
  enum_field(visit, "form", form, {"paper", "code"}, "how draw, rise and penalty are combined");
  visit.field("initial", initial, "trajectories that start from the prompt, if no probe is used", at_least(1));
  visit.field("base", base, "probability of branching (code: threshold) if entropy does not rise", between(0, 1));
  visit.field("weight", weight, "how much a rise of entropy adds", at_least(0));
  visit.field("penalty", penalty, "share by which each consecutive branch reduces it", at_least(0));
  visit.field("beam", beam, "beam - 1 decisions are taken at each place", at_least(1));
  visit.field("probe", probe, "sample one trajectory first and divide the budget by its entropies");
  visit.field("probe_slope", probe_slope, "slope of the sigmoid that divides the budget", at_least(0));
  enum_field(visit, "timing", timing, {"after_observation", "same_turn"}, "which turn's entropy decides");
  enum_field(visit, "streak", streak, {"trajectory", "task"}, "over what consecutive branches are counted");
  visit.field("entropy_tokens", measure.tokens, "first tokens of the turn whose entropy is summed", at_least(1));
  visit.field("entropy_candidates", measure.candidates, "candidates a token's entropy is taken over; 0: all",
              at_least(0));
}

UnreadKeys BalancedBranchOptions::unread_keys() const {
  UnreadKeys unread;
  if (probe) unread.add({"initial"}, "branch.probe divides the budget");
  if (!probe) unread.add({"probe_slope"}, "branch.probe is false");
  return unread;
}

std::unique_ptr<BranchPolicy> balanced_branch(const BalancedBranchOptions& options) {
  return std::make_unique<BalancedBranch>(options);
}

BalancedBranchOptions published_balanced_branch() {
  return {.form = BalancedForm::Code,
          .initial = 6,
          .penalty = 0.05,
          .probe = false,
          .probe_slope = 0.5,
          .timing = BranchTiming::SameTurn,
          .streak = BranchStreak::Task,
          .measure = {.candidates = 10}};
}

int balanced_budget(int budget, const EntropyProbe& probe, double slope, BalancedForm form) {
  const double behind_tools = probe.tool_calls.empty() ? probe.root : mean(probe.tool_calls);
  const double share = 1 / (1 + std::exp(-slope * (probe.root - behind_tools)));
  const int whole = static_cast<int>(std::floor(budget * share)) + (form == BalancedForm::Code ? 1 : 0);
  return std::clamp(whole, 1, budget);
}

}  // namespace carnot
