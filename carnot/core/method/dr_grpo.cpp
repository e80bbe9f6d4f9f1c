// method/dr_grpo.cpp -- GRPO without the biases towards easy groups and long answers, arXiv:2503.20783
#include "carnot/core/method/base.h"

namespace carnot {
namespace {

constexpr PresetEntry kDrGrpoPresets[] = {
    {Preset::Carnot, "token losses of the step over a constant, dual clip 3; a group of one gets 0"},
    {Preset::Paper, "sequence_mean_token_sum, no dual clip"},
    {Preset::Code, "as carnot, but a group of one keeps its reward (verl)"},
};

class DrGrpo final : public MethodOptions {
  void keys(MethodKeys& keys) override {
    keys.preset(kDrGrpoPresets, preset_, [&] { base_.group.normalisation.singleton = singleton_of(preset_); });
    singleton_field(keys.visit, base_.group.normalisation.singleton);
    statistics_field(keys.visit, base_.group.statistics);
    keys.reward(base_.reward, RewardsRead::Totals);
  }

  void compose(Method& method) const override {
    start_group_base(method, base_);
    method.objective.reduction = Reduction::TokenSumOverConstant;
    if (preset_ == Preset::Paper) method.objective = {.dual_clip = 0, .reduction = Reduction::SequenceMeanTokenSum};
  }

  Preset preset_ = Preset::Carnot;
  GroupBaseOptions base_{.group = {.normalisation = {.divide_by_std = false}}};
};

}  // namespace

std::unique_ptr<MethodOptions> dr_grpo() { return std::make_unique<DrGrpo>(); }

}  // namespace carnot
