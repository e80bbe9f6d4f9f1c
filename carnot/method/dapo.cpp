// method/dapo.cpp -- Decoupled clip and dynamic sampling, arXiv:2503.14476
#include "carnot/method/base.h"
#include "carnot/method/entries.h"
#include "carnot/method/preset.h"

namespace carnot {
namespace {

constexpr PresetEntry kPresets[] = {
    {Preset::Carnot, "dual clip 10; a group of one gets 0"},
    {Preset::Paper, "no dual clip"},
    {Preset::Code, "dual clip 10; a group of one keeps its reward (verl's recipe)"},
};

class Dapo final : public MethodOptions {
 public:
  void fields(FieldVisitor& visit) override {
    preset_field(visit, kPresets, preset_, [&] {
      group_.normalisation.singleton = preset_ == Preset::Code ? Singleton::Raw : Singleton::Zero;
    });
    visit.field("max_refills", max_refills_, "batches of further rollouts for groups without a signal", at_least(0));
    group_.fields(visit);
    reward_section(visit, reward_);
  }

  UnreadKeys unread_keys() const override {
    UnreadKeys unread;
    unread.add(group_.normalisation.unread_keys());
    unread.add(reward_.unread_keys(RewardsRead::Totals), "reward");
    return unread;
  }

  void compose(Method& method) const override {
    start_group_base(method, reward_, group_);
    method.filter = drop_zero_variance(max_refills_);
    method.objective.clip_high = 0.28;
    method.objective.dual_clip = preset_ == Preset::Paper ? 0 : 10;
  }

 private:
  Preset preset_ = Preset::Carnot;
  int max_refills_ = 10;
  GroupRelativeOptions group_{};
  RewardOptions reward_{.overlong_limit = 20480};
};

}  // namespace

MethodEntry dapo_entry() {
  return {.name = "dapo",
          .paper = "2503.14476",
          .summary = "GRPO with a higher upper clip, dropped groups without a signal, penalty on overlong answers",
          .is_base = true,
          .is_add_on = false,
          .presets = kPresets,
          .make = make_method<Dapo>};
}

}  // namespace carnot
