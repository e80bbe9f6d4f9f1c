// method/rloo.cpp -- REINFORCE leave-one-out, arXiv:2402.14740, trained with the clipped loss as its users do
#include "carnot/core/credit/group_relative.h"
#include "carnot/core/method/base.h"

namespace carnot {
namespace {

constexpr PresetEntry kRlooPresets[] = {
    {Preset::Carnot, "KL 0.01 in the loss, token mean; a group of one gets 0"},
    {Preset::Paper, "KL 0.03 in the reward (appendix C), none in the loss, sequence_mean_token_sum, no dual clip"},
    {Preset::Code,
     "verl-agent: statistics over rows, a group of one keeps its reward, KL 0.01 in the loss, entropy bonus 0.001"},
};

class Rloo final : public MethodOptions {
  void keys(MethodKeys& keys) override {
    keys.preset(kRlooPresets, preset_,
                [&] { group_ = {.singleton = singleton_of(preset_), .statistics = statistics_of(preset_)}; });
    keys.add(group_);
    keys.reward(reward_, RewardsRead::Totals);
  }

  void compose(Method& method) const override {
    start_base(method, reward_);
    method.credit.push_back(leave_one_out(group_));
    method.objective.kl_coefficient = 0.01;
    if (preset_ == Preset::Code) method.objective.entropy_coefficient = 0.001;
    if (preset_ == Preset::Paper)
      method.objective = {.dual_clip = 0, .reduction = Reduction::SequenceMeanTokenSum, .kl_in_reward = 0.03};
  }

  Preset preset_ = Preset::Carnot;
  LeaveOneOutOptions group_{};
  RewardOptions reward_{};
};

}  // namespace

std::unique_ptr<MethodOptions> rloo() { return std::make_unique<Rloo>(); }

}  // namespace carnot
