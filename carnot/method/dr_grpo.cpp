// method/dr_grpo.cpp -- GRPO without the biases towards easy groups and long answers, arXiv:2503.20783
#include "carnot/method/base.h"
#include "carnot/method/entries.h"
#include "carnot/method/preset.h"

namespace carnot {
namespace {

constexpr PresetEntry kPresets[] = {
    {Preset::Carnot, "token losses of the step over a constant, dual clip 3; a group of one gets 0"},
    {Preset::Paper, "sequence_mean_token_sum, no dual clip"},
    {Preset::Code, "as carnot, but a group of one keeps its reward (verl)"},
};

class DrGrpo final : public MethodOptions {
 public:
  void fields(FieldVisitor& visit) override {
    preset_field(visit, kPresets, preset_, [&] {
      group_.normalisation.singleton = preset_ == Preset::Code ? Singleton::Raw : Singleton::Zero;
    });
    singleton_field(visit, group_.normalisation.singleton);
    statistics_field(visit, group_.statistics);
    reward_section(visit, reward_);
  }

  UnreadKeys unread_keys() const override {
    UnreadKeys unread;
    unread.add(reward_.unread_keys(RewardsRead::Totals), "reward");
    return unread;
  }

  void compose(Method& method) const override {
    start_group_base(method, reward_, group_);
    method.objective.reduction = Reduction::TokenSumOverConstant;
    if (preset_ != Preset::Paper) return;
    method.objective.reduction = Reduction::SequenceMeanTokenSum;
    method.objective.dual_clip = 0;
  }

 private:
  Preset preset_ = Preset::Carnot;
  GroupRelativeOptions group_{.normalisation = {.divide_by_std = false}};
  RewardOptions reward_{};
};

}  // namespace

MethodEntry dr_grpo_entry() {
  return {.name = "dr_grpo",
          .paper = "2503.20783",
          .summary = "GRPO without division by deviation or length",
          .is_base = true,
          .is_add_on = false,
          .presets = kPresets,
          .make = make_method<DrGrpo>};
}

}  // namespace carnot
