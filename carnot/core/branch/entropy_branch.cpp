#include "carnot/core/branch/entropy_branch.h"

#include <algorithm>

namespace carnot {
namespace {

class EntropyBranch final : public BranchPolicy {
 public:
  explicit EntropyBranch(const EntropyBranchOptions& options) : options_(options) {}

  std::string name() const override { return "entropy_branch"; }
  int initial(int budget) const override { return std::min(options_.initial, budget); }

  bool branch_here(const BranchContext& at) const override {
    if (at.trajectories >= at.budget) return false;
    const double rise = at.turn_entropy - at.initial_entropy;
    if (options_.rule == EntropyBranchRule::Threshold)
      return options_.base + options_.weight * rise > options_.threshold;
    return std::clamp(at.uniform - options_.weight * rise, 0.0, 1.0) <= options_.base;
  }

  int attempts() const override { return options_.beam - 1; }
  bool ever_branches() const override { return attempts() > 0; }
  BranchTiming timing() const override { return options_.timing; }
  TurnEntropyMeasure measure() const override { return options_.measure; }

 private:
  EntropyBranchOptions options_;
};

}  // namespace

void EntropyBranchOptions::fields(FieldVisitor& visit) {
  enum_field(visit, "rule", rule, {"probability", "threshold"},
             "base + weight * rise is the probability of branching, or has to exceed the threshold");
  visit.field("initial", initial, "trajectories that start from the prompt", at_least(1));
  visit.field("base", base, "if entropy does not rise", between(0, 1));
  visit.field("weight", weight, "how much a rise of entropy adds to it", at_least(0));
  visit.field("threshold", threshold, "for the rule of that name", between(0, 1));
  visit.field("beam", beam, "beam - 1 decisions are taken at each place", at_least(1));
  enum_field(visit, "timing", timing, {"after_observation", "same_turn"}, "which turn's entropy decides");
  visit.field("entropy_tokens", measure.tokens, "first tokens of the turn whose entropy is summed", at_least(1));
  visit.field("entropy_candidates", measure.candidates, "candidates a token's entropy is taken over; 0: all",
              at_least(0));
}

UnreadKeys EntropyBranchOptions::unread_keys() const {
  UnreadKeys unread;
  if (rule == EntropyBranchRule::Probability) unread.add({"threshold"}, "branch.rule is probability");
  return unread;
}

std::unique_ptr<BranchPolicy> entropy_branch(const EntropyBranchOptions& options) {
  return std::make_unique<EntropyBranch>(options);
}

}  // namespace carnot
