// method/ppo.cpp -- Proximal Policy Optimization with a critic, arXiv:1707.06347
#include "carnot/core/credit/gae.h"
#include "carnot/core/method/base.h"

namespace carnot {
namespace {

constexpr PresetEntry kPpoPresets[] = {
    {Preset::Paper, "gamma and lambda 1, advantages whitened, clip 0.2, token mean, dual clip 3"},
};

class Ppo final : public MethodOptions {
  void keys(MethodKeys& keys) override {
    keys.preset(kPpoPresets);
    keys.add(estimator_);
    keys.reward(reward_, RewardsRead::Tokens);
    keys.compat([&](FieldVisitor& visit) { estimator_.quirks.fields(visit); });
  }

  void compose(Method& method) const override {
    start_base(method, reward_);
    method.credit.push_back(critic_estimator(estimator_));
    method.objective.value_coefficient = 1;
  }

  CriticEstimatorOptions estimator_{};
  RewardOptions reward_{};
};

}  // namespace

std::unique_ptr<MethodOptions> ppo() { return std::make_unique<Ppo>(); }

}  // namespace carnot
