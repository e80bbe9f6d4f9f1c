// method/gigpo.cpp -- Group-in-Group Policy Optimization, arXiv:2505.10978
#include "carnot/core/credit/step_group.h"
#include "carnot/core/method/base.h"

namespace carnot {
namespace {

constexpr PresetEntry kGigpoPresets[] = {
    {Preset::Carnot, "statistics over trajectories, dual clip 3"},
    {Preset::Paper, "statistics over trajectories, no dual clip"},
    {Preset::Code, "verl-agent: statistics over rows, a group of one keeps its reward, entropy bonus 0.001"},
};

class Gigpo final : public MethodOptions {
  void keys(MethodKeys& keys) override {
    keys.add(step_);
    if (!keys.is_base) return;
    keys.preset(kGigpoPresets, preset_, [&] {
      base_.group = {.normalisation = {.singleton = singleton_of(preset_)}, .statistics = statistics_of(preset_)};
    });
    statistics_field(keys.visit, base_.group.statistics);
    singleton_field(keys.visit, base_.group.normalisation.singleton);
    keys.reward(base_.reward, RewardsRead::Totals);
  }

  void compose(Method& method) const override {
    GroupBaseOptions base = base_;
    base.group.normalisation.divide_by_std = step_.normalisation.divide_by_std;
    if (bring_group_base(method, base)) {
      method.objective.kl_coefficient = 0.01;
      if (preset_ == Preset::Paper) method.objective.dual_clip = 0;
      if (preset_ == Preset::Code) method.objective.entropy_coefficient = 0.001;
    }
    method.credit.push_back(step_group(step_));
  }

  Preset preset_ = Preset::Carnot;
  StepGroupOptions step_{};
  GroupBaseOptions base_{};
};

}  // namespace

std::unique_ptr<MethodOptions> gigpo() { return std::make_unique<Gigpo>(); }

}  // namespace carnot
