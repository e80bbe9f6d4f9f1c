// method/grpo.cpp -- Group Relative Policy Optimization, arXiv:2402.03300
#include "carnot/core/credit/group_estimator.h"
#include "carnot/core/method/base.h"

namespace carnot {
namespace {

constexpr PresetEntry kGrpoPresets[] = {
    {Preset::Carnot, "token mean, dual clip 3, kl_coefficient 0.001; a group of one gets 0"},
    {Preset::Paper, "sequence_mean_token_mean (eq. 3), no dual clip, kl_coefficient 0.04 (section 4.2)"},
    {Preset::Code, "as carnot, but a group of one keeps its reward (verl)"},
};

class Grpo final : public MethodOptions {
  void keys(MethodKeys& keys) override {
    keys.preset(kGrpoPresets, preset_, [&] { estimator_.group.normalisation.singleton = singleton_of(preset_); });
    keys.add(estimator_);
    keys.reward(reward_, RewardsRead::Totals);
  }

  void compose(Method& method) const override {
    start_base(method, reward_);
    method.credit.push_back(group_estimator(estimator_));
    method.objective.kl_coefficient = preset_ == Preset::Paper ? 0.04 : 0.001;
    if (preset_ == Preset::Paper) mean_over_sequences(method.objective);
  }

  Preset preset_ = Preset::Carnot;
  GroupEstimatorOptions estimator_{};
  RewardOptions reward_{};
};

}  // namespace

std::unique_ptr<MethodOptions> grpo() { return std::make_unique<Grpo>(); }

}  // namespace carnot
