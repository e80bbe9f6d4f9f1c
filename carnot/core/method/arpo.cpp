// method/arpo.cpp -- Agentic Reinforced Policy Optimization, arXiv:2507.19849
#include "carnot/core/branch/entropy_branch.h"
#include "carnot/core/credit/tree_relative.h"
#include "carnot/core/method/base.h"

namespace carnot {
namespace {

constexpr PresetEntry kArpoPresets[] = {
    {Preset::Carnot,
     "branches with probability base + weight * rise of the turn after an observation; GRPO's token mean"},
    {Preset::Paper,
     "branches where base + weight * rise is above 0.5 (eq. 5, appendix C.2); sequence_mean_token_mean, no dual clip"},
    {Preset::Code,
     "as carnot, but the turn that made the call decides, over its 10 likeliest tokens; a group of one keeps "
     "its reward"},
};

class Arpo final : public MethodOptions {
  void keys(MethodKeys& keys) override {
    keys.preset(kArpoPresets, preset_, [&] {
      branch_.rule = preset_ == Preset::Paper ? EntropyBranchRule::Threshold : EntropyBranchRule::Probability;
      branch_.timing = preset_ == Preset::Code ? BranchTiming::SameTurn : BranchTiming::AfterObservation;
      branch_.measure.candidates = preset_ == Preset::Code ? 10 : 0;
      base_.group.normalisation.singleton = singleton_of(preset_);
    });
    keys.add("branch", branch_, "where trajectories branch");
    keys.visit.field("share_prefix", share_prefix_,
                     "shared turns get the mean of their trajectories' advantages (hard form)");
    if (keys.is_base) keys.add(base_);
  }

  void compose(Method& method) const override {
    if (bring_group_base(method, base_) && preset_ == Preset::Paper) mean_over_sequences(method.objective);
    method.branch = entropy_branch(branch_);
    if (share_prefix_) method.credit.push_back(shared_prefix());
  }

  Preset preset_ = Preset::Carnot;
  EntropyBranchOptions branch_{};
  bool share_prefix_ = false;
  GroupBaseOptions base_{};
};

}  // namespace

std::unique_ptr<MethodOptions> arpo() { return std::make_unique<Arpo>(); }

}  // namespace carnot
