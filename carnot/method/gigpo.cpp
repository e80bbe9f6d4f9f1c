// method/gigpo.cpp -- Group-in-Group Policy Optimization, arXiv:2505.10978
#include "carnot/credit/step_group.h"
#include "carnot/method/base.h"
#include "carnot/method/entries.h"
#include "carnot/method/preset.h"

namespace carnot {
namespace {

constexpr PresetEntry kPresets[] = {
    {Preset::Carnot, "statistics over trajectories, dual clip 3"},
    {Preset::Paper, "statistics over trajectories, no dual clip"},
    {Preset::Code, "verl-agent: statistics over rows, a group of one keeps its reward, entropy bonus 0.001"},
};

class Gigpo final : public MethodOptions {
 public:
  void fields(FieldVisitor& visit) override { step_.fields(visit); }

  void base_fields(FieldVisitor& visit) override {
    preset_field(visit, kPresets, preset_, [&] {
      statistics_ = preset_ == Preset::Code ? Statistics::Rows : Statistics::Trajectories;
      singleton_ = preset_ == Preset::Code ? Singleton::Raw : Singleton::Zero;
    });
    statistics_field(visit, statistics_);
    singleton_field(visit, singleton_);
    reward_section(visit, reward_);
  }

  UnreadKeys unread_keys() const override {
    UnreadKeys unread;
    unread.add(reward_.unread_keys(RewardsRead::Totals), "reward");
    return unread;
  }

  void compose(Method& method) const override {
    if (!has_base(method)) start(method);
    method.credit.push_back(step_group(step_));
  }

 private:
  void start(Method& method) const {
    Normalisation normalisation = step_.normalisation;
    normalisation.singleton = singleton_;
    start_group_base(method, reward_, {.normalisation = normalisation, .statistics = statistics_});
    method.objective.kl_coefficient = 0.01;
    if (preset_ == Preset::Paper) method.objective.dual_clip = 0;
    if (preset_ == Preset::Code) method.objective.entropy_coefficient = 0.001;
  }

  Preset preset_ = Preset::Carnot;
  StepGroupOptions step_{};
  Statistics statistics_ = Statistics::Trajectories;
  Singleton singleton_ = Singleton::Zero;
  RewardOptions reward_{};
};

}  // namespace

MethodEntry gigpo_entry() {
  return {.name = "gigpo",
          .paper = "2505.10978",
          .summary = "turns against other turns that began in the same state",
          .is_base = true,
          .is_add_on = true,
          .presets = kPresets,
          .make = make_method<Gigpo>};
}

}  // namespace carnot
