// method/dapo.cpp -- Decoupled clip and dynamic sampling, arXiv:2503.14476
#include "carnot/core/method/base.h"

namespace carnot {
namespace {

constexpr PresetEntry kDapoPresets[] = {
    {Preset::Carnot, "dual clip 10; a group of one gets 0"},
    {Preset::Paper, "no dual clip"},
    {Preset::Code, "dual clip 10; a group of one keeps its reward (verl's recipe)"},
};

class Dapo final : public MethodOptions {
  void keys(MethodKeys& keys) override {
    keys.preset(kDapoPresets, preset_, [&] { base_.group.normalisation.singleton = singleton_of(preset_); });
    keys.visit.field("max_refills", max_refills_, "batches of further rollouts for groups without a signal",
                     at_least(0));
    keys.add(base_);
  }

  void compose(Method& method) const override {
    start_group_base(method, base_);
    method.filter = drop_zero_variance(max_refills_);
    method.objective.clip_high = 0.28;
    method.objective.dual_clip = preset_ == Preset::Paper ? 0 : 10;
  }

  Preset preset_ = Preset::Carnot;
  int max_refills_ = 10;
  GroupBaseOptions base_{.reward = {.overlong_limit = 20480}};
};

}  // namespace

std::unique_ptr<MethodOptions> dapo() { return std::make_unique<Dapo>(); }

}  // namespace carnot
