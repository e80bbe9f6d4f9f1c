// method/starpo_s.cpp -- StarPO-S: a critic, the most varied groups, a higher upper clip, no KL, arXiv:2504.20073
#include "carnot/credit/gae.h"
#include "carnot/method/base.h"
#include "carnot/method/entries.h"
#include "carnot/method/preset.h"

namespace carnot {
namespace {

constexpr PresetEntry kPresets[] = {
    {Preset::Paper, "a quarter of the groups, clip 0.2 and 0.28, entropy bonus 0.001, no KL"},
};

struct FilterQuirks {
  bool keep_least_varied = false;

  void fields(FieldVisitor& visit) {
    visit.field("keep_least_varied", keep_least_varied, "keep the groups with the smallest deviation instead");
  }
};

class StarpoS final : public MethodOptions {
 public:
  void fields(FieldVisitor& visit) override {
    preset_field(visit, kPresets);
    visit.field("keep_share", keep_share_, "share of groups, the most varied, that take part; 1: all",
                {.low = 0, .high = 1, .open_low = true});
    gae_.fields(visit);
    reward_section(visit, reward_);
    section(visit, "compat", quirks_, "single quirks of published code");
  }

  UnreadKeys unread_keys() const override {
    UnreadKeys unread;
    unread.add(gae_.unread_keys());
    unread.add(reward_.unread_keys(RewardsRead::Tokens), "reward");
    return unread;
  }

  void compose(Method& method) const override {
    start_base(method, reward_);
    method.filter = quirks_.keep_least_varied ? keep_least_varied(keep_share_) : keep_most_varied(keep_share_);
    method.credit.push_back(gae(gae_));
    method.objective.clip_high = 0.28;
    method.objective.entropy_coefficient = 0.001;
    method.objective.value_coefficient = 1;
  }

 private:
  double keep_share_ = 0.25;
  GaeOptions gae_{};
  FilterQuirks quirks_{};
  RewardOptions reward_{};
};

}  // namespace

MethodEntry starpo_s_entry() {
  return {.name = "starpo_s",
          .paper = "2504.20073",
          .summary = "PPO on the groups whose rewards vary most",
          .is_base = true,
          .is_add_on = false,
          .presets = kPresets,
          .make = make_method<StarpoS>};
}

}  // namespace carnot
