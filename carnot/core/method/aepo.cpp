// method/aepo.cpp -- Agentic Entropy-Balanced Policy Optimization, arXiv:2510.14545
#include "carnot/core/branch/balanced_branch.h"
#include "carnot/core/method/base.h"

namespace carnot {
namespace {

constexpr PresetEntry kAepoPresets[] = {
    {Preset::Paper, "branching, budget and entropy scale as in the equations, clip 0.2 and 0.28, no dual clip"},
    {Preset::Code, "the program's branching without a probe, entropies of the micro-batch, clip 0.2, dual clip 3"},
};

class Aepo final : public MethodOptions {
  void keys(MethodKeys& keys) override {
    keys.preset(kAepoPresets, preset_, [&] {
      branch_ = preset_ == Preset::Code ? published_balanced_branch() : BalancedBranchOptions();
      scale_over_ = preset_ == Preset::Code ? EntropyScaleOver::CurrentMicroBatch : EntropyScaleOver::OldPolicyStep;
    });
    keys.visit.field("branching", branching_, "let rollouts branch; false: leave them as the base has them");
    keys.add("branch", branch_, "where trajectories branch, and how the budget is divided");
    if (!branching_) keys.unread_all(branch_, "branch", "branching is false");
    keys.visit.field("preserve_gradient", preserve_gradient_, "keep the gradient of ratios clipped from above");
    keys.visit.field("entropy_scale", entropy_scale_, "how far advantages follow their token's entropy", at_least(0));
    entropy_scale_over_field(keys.visit, scale_over_, "which entropies a token's is compared with");
    if (keys.is_base) keys.add(base_);
  }

  void compose(Method& method) const override {
    if (bring_group_base(method, base_) && preset_ == Preset::Paper)
      method.objective = {.clip_high = 0.28, .dual_clip = 0};
    if (branching_) method.branch = balanced_branch(branch_);
    if (preserve_gradient_) method.objective.clip_gradient = ClipGradient::Preserve;
    if (entropy_scale_ == 0) return;
    method.objective.entropy_scale = entropy_scale_;
    method.objective.entropy_scale_over = scale_over_;
  }

  Preset preset_ = Preset::Paper;
  bool branching_ = true, preserve_gradient_ = true;
  BalancedBranchOptions branch_{};
  double entropy_scale_ = 0.2;
  EntropyScaleOver scale_over_ = EntropyScaleOver::OldPolicyStep;
  GroupBaseOptions base_{};
};

}  // namespace

std::unique_ptr<MethodOptions> aepo() { return std::make_unique<Aepo>(); }

}  // namespace carnot
