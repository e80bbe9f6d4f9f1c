// method/gspo.cpp -- Group Sequence Policy Optimization, arXiv:2507.18071
#include "carnot/method/base.h"
#include "carnot/method/entries.h"
#include "carnot/method/preset.h"

namespace carnot {
namespace {

constexpr PresetEntry kPresets[] = {
    {Preset::Paper, "one ratio per sequence, clip 3e-4 and 4e-4, sequence_mean_token_mean, no dual clip"},
};

class Gspo final : public MethodOptions {
 public:
  void fields(FieldVisitor& visit) override {
    preset_field(visit, kPresets);
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
    method.objective.ratio = RatioLevel::Sequence;  // one length-normalised ratio per trajectory
    method.objective.clip_low = 3e-4;
    method.objective.clip_high = 4e-4;
    method.objective.dual_clip = 0;
    method.objective.reduction = Reduction::SequenceMeanTokenMean;
  }

 private:
  GroupRelativeOptions group_{};
  RewardOptions reward_{};
};

}  // namespace

MethodEntry gspo_entry() {
  return {.name = "gspo",
          .paper = "2507.18071",
          .summary = "GRPO with one probability ratio per sequence",
          .is_base = true,
          .is_add_on = false,
          .presets = kPresets,
          .make = make_method<Gspo>};
}

}  // namespace carnot
