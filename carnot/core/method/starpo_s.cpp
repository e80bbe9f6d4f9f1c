// method/starpo_s.cpp -- StarPO-S: a critic, the most varied groups, a higher upper clip, no KL, arXiv:2504.20073
#include "carnot/core/credit/gae.h"
#include "carnot/core/method/base.h"

namespace carnot {
namespace {

constexpr PresetEntry kStarpoSPresets[] = {
    {Preset::Paper, "a quarter of the groups, clip 0.2 and 0.28, entropy bonus 0.001, no KL"},
};

class StarpoS final : public MethodOptions {
  void keys(MethodKeys& keys) override {
    keys.preset(kStarpoSPresets);
    keys.visit.field("keep_share", keep_share_, "share of groups, the most varied, that take part; 1: all",
                     {.low = 0, .high = 1, .open_low = true});
    keys.add(gae_);
    keys.reward(reward_, RewardsRead::Tokens);
    keys.compat([&](FieldVisitor& visit) {
      visit.field("keep_least_varied", keep_least_varied_, "keep the groups with the smallest deviation instead");
    });
  }

  void compose(Method& method) const override {
    start_base(method, reward_);
    method.filter = keep_least_varied_ ? keep_least_varied(keep_share_) : keep_most_varied(keep_share_);
    method.credit.push_back(gae(gae_));
    method.objective = {.clip_high = 0.28, .entropy_coefficient = 0.001, .value_coefficient = 1};
  }

  double keep_share_ = 0.25;
  bool keep_least_varied_ = false;
  GaeOptions gae_{};
  RewardOptions reward_{};
};

}  // namespace

std::unique_ptr<MethodOptions> starpo_s() { return std::make_unique<StarpoS>(); }

}  // namespace carnot
