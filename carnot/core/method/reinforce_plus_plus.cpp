// method/reinforce_plus_plus.cpp -- REINFORCE++, with or without the group's mean as baseline, arXiv:2501.03262
#include "carnot/core/credit/reinforce.h"
#include "carnot/core/method/base.h"

namespace carnot {
namespace {

constexpr PresetEntry kReinforcePlusPlusPresets[] = {
    {Preset::Carnot, "KL 0.001 in the loss; returns pass observations"},
    {Preset::Paper,
     "KL 0.01 in the reward (version 1, eq. 4, table 1), none in the loss, no dual clip; returns pass observations"},
    {Preset::Code,
     "verl: KL 0.001 in the loss with k2, returns restart after observations, a group of one keeps its reward"},
};

class ReinforcePlusPlus final : public MethodOptions {
  void keys(MethodKeys& keys) override {
    keys.preset(kReinforcePlusPlusPresets, preset_, [&] {
      reinforce_.restart_at_observations = preset_ == Preset::Code;
      reinforce_.singleton = singleton_of(preset_);
      reinforce_.whitening.count_epsilon = preset_ == Preset::Code ? 1e-8 : 0;
    });
    keys.add(reinforce_);
    keys.reward(reward_, reinforce_.group_baseline ? RewardsRead::Totals : RewardsRead::Tokens);
    keys.compat([&](FieldVisitor& visit) { reinforce_.quirk_fields(visit); });
  }

  void compose(Method& method) const override {
    start_base(method, reward_);
    method.credit.push_back(reinforce(reinforce_));
    method.objective.kl_coefficient = 0.001;
    if (preset_ == Preset::Code) method.objective.kl_estimator = KlEstimator::K2;
    if (preset_ == Preset::Paper) method.objective = {.dual_clip = 0, .kl_in_reward = 0.01};
  }

  Preset preset_ = Preset::Carnot;
  ReinforceOptions reinforce_{};
  RewardOptions reward_{};
};

}  // namespace

std::unique_ptr<MethodOptions> reinforce_plus_plus() { return std::make_unique<ReinforcePlusPlus>(); }

}  // namespace carnot
