// method/igpo.cpp -- Information Gain-based Policy Optimization, arXiv:2510.14967
#include "carnot/core/credit/token_gain.h"
#include "carnot/core/method/base.h"

namespace carnot {
namespace {

constexpr PresetEntry kIgpoPresets[] = {
    {Preset::Paper, "gains and outcomes of a group normalised together and summed turn by turn"},
    {Preset::Code,
     "November 2025: gains as token rewards against the group's mean at each token index; entropy bonus 0.001"},
};

class Igpo final : public MethodOptions {
  void keys(MethodKeys& keys) override {
    keys.preset(kIgpoPresets, preset_, [&] { estimator_.quirks.token_rewards = preset_ == Preset::Code; });
    keys.add(estimator_);
    keys.add("info_gain", info_gain_, "how gains are measured");
    keys.reward(reward_, RewardsRead::Totals);
    keys.compat([&](FieldVisitor& visit) { estimator_.quirks.fields(visit); });
  }

  void compose(Method& method) const override {
    start_base(method, reward_);
    method.info_gain = info_gain_;
    method.credit.push_back(gain_estimator(estimator_));
    method.objective.kl_coefficient = 0.001;
    if (preset_ == Preset::Code) method.objective.entropy_coefficient = 0.001;
  }

  Preset preset_ = Preset::Paper;
  GainEstimatorOptions estimator_{};
  InfoGainOptions info_gain_{};
  RewardOptions reward_{};
};

}  // namespace

std::unique_ptr<MethodOptions> igpo() { return std::make_unique<Igpo>(); }

}  // namespace carnot
