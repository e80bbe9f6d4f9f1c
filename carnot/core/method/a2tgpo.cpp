// method/a2tgpo.cpp -- Agentic Turn-Group Policy Optimization with adaptive turn-level clipping, arXiv:2605.06200
#include "carnot/core/credit/turn_group_gain.h"
#include "carnot/core/method/base.h"

namespace carnot {
namespace {

constexpr PresetEntry kA2tgpoPresets[] = {
    {Preset::Paper, "gains of probabilities against the prompt alone, weight 1"},
    {Preset::Code, "gains of log-probabilities from the second turn on, weight 0.3; gains of 0 are lost"},
};

class A2tgpo final : public MethodOptions {
  void keys(MethodKeys& keys) override {
    keys.preset(kA2tgpoPresets, preset_, [&] {
      const bool code = preset_ == Preset::Code;
      gain_.weight = code ? 0.3 : 1;
      gain_.steps = code ? GainSteps::NonzeroGains : GainSteps::Turns;
      info_gain_ = {.measure = code ? GainMeasure::LogProbability : GainMeasure::Probability, .query_baseline = !code};
    });
    keys.add(gain_);
    keys.add("info_gain", info_gain_, "how gains are measured");
    keys.compat([&](FieldVisitor& visit) { gain_.quirk_fields(visit); });
    if (keys.is_base) keys.reward(reward_, RewardsRead::Totals);
  }

  void compose(Method& method) const override {
    if (bring_group_base(method, {.group = {.normalisation = population_normalisation()}, .reward = reward_})) {
      method.objective = {.ratio = RatioLevel::Turn, .clip_low = 3e-3, .clip_high = 4e-3};
      mean_over_sequences(method.objective);
    }
    method.info_gain = info_gain_;
    method.credit.push_back(turn_group_gain(gain_));
  }

  Preset preset_ = Preset::Paper;
  TurnGroupGainOptions gain_{};
  InfoGainOptions info_gain_{};
  RewardOptions reward_{};
};

}  // namespace

std::unique_ptr<MethodOptions> a2tgpo() { return std::make_unique<A2tgpo>(); }

}  // namespace carnot
