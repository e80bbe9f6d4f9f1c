// method/aepo.cpp -- Agentic Entropy-Balanced Policy Optimization, arXiv:2510.14545
#include "carnot/branch/balanced_branch.h"
#include "carnot/method/base.h"
#include "carnot/method/entries.h"
#include "carnot/method/preset.h"

namespace carnot {
namespace {

constexpr PresetEntry kPresets[] = {
    {Preset::Paper, "branching, budget and entropy scale as in the equations, clip 0.2 and 0.28"},
    {Preset::Code, "the program's branching without a probe, entropies of the micro-batch, clip 0.2"},
};

class Aepo final : public MethodOptions {
 public:
  void fields(FieldVisitor& visit) override {
    preset_field(visit, kPresets, preset_, [&] {
      branch_ = preset_ == Preset::Code ? published_balanced_branch() : BalancedBranchOptions();
      scale_over_ = preset_ == Preset::Code ? EntropyScaleOver::CurrentMicroBatch : EntropyScaleOver::OldPolicyStep;
    });
    visit.field("branching", branching_, "let rollouts branch; false: leave them as the base has them");
    section(visit, "branch", branch_, "where trajectories branch, and how the budget is divided");
    visit.field("preserve_gradient", preserve_gradient_, "keep the gradient of ratios clipped from above");
    visit.field("entropy_scale", entropy_scale_, "how far advantages follow their token's entropy", at_least(0));
    enum_field(visit, "entropy_scale_over", scale_over_, {"old_policy_step", "current_micro_batch"},
               "which entropies a token's is compared with");
  }

  void base_fields(FieldVisitor& visit) override {
    group_.fields(visit);
    reward_section(visit, reward_);
  }

  UnreadKeys unread_keys() const override {
    UnreadKeys unread;
    unread.add(branch_.unread_keys(), "branch");
    if (!branching_) unread.add_all(branch_, "branch", "branching is false");
    unread.add(group_.normalisation.unread_keys());
    unread.add(reward_.unread_keys(RewardsRead::Totals), "reward");
    return unread;
  }

  void compose(Method& method) const override {
    if (!has_base(method)) {
      start_group_base(method, reward_, group_);
      if (preset_ == Preset::Paper) method.objective.clip_high = 0.28;
    }
    if (branching_) {
      method.branch = balanced_branch(branch_);
      method.signals.insert(Signal::TurnEntropy);
    }
    if (preserve_gradient_) method.objective.clip_gradient = ClipGradient::Preserve;
    if (entropy_scale_ == 0) return;
    method.objective.entropy_scale = entropy_scale_;
    method.objective.entropy_scale_over = scale_over_;
  }

 private:
  Preset preset_ = Preset::Paper;
  bool branching_ = true;
  BalancedBranchOptions branch_{};
  bool preserve_gradient_ = true;
  double entropy_scale_ = 0.2;
  EntropyScaleOver scale_over_ = EntropyScaleOver::OldPolicyStep;
  GroupRelativeOptions group_{};
  RewardOptions reward_{};
};

}  // namespace

MethodEntry aepo_entry() {
  return {.name = "aepo",
          .paper = "2510.14545",
          .summary = "entropy-balanced branching, clip and advantages",
          .is_base = true,
          .is_add_on = true,
          .presets = kPresets,
          .make = make_method<Aepo>};
}

}  // namespace carnot
