// method/rloo.cpp -- REINFORCE leave-one-out, arXiv:2402.14740, trained with the clipped loss as its users do
#include "carnot/credit/leave_one_out.h"
#include "carnot/method/base.h"
#include "carnot/method/entries.h"
#include "carnot/method/preset.h"

namespace carnot {
namespace {

constexpr PresetEntry kPresets[] = {
    {Preset::Carnot, "KL 0.01 in the loss, token mean; a group of one gets 0"},
    {Preset::Paper, "KL 0.03 in the reward (appendix C), none in the loss, sequence_mean_token_sum, no dual clip"},
    {Preset::Code,
     "verl-agent: statistics over rows, a group of one keeps its reward, KL 0.01 in the loss, entropy bonus 0.001"},
};

class Rloo final : public MethodOptions {
 public:
  void fields(FieldVisitor& visit) override {
    preset_field(visit, kPresets, preset_, [&] {
      group_.statistics = preset_ == Preset::Code ? Statistics::Rows : Statistics::Trajectories;
      group_.singleton = preset_ == Preset::Code ? Singleton::Raw : Singleton::Zero;
    });
    group_.fields(visit);
    reward_section(visit, reward_);
  }

  UnreadKeys unread_keys() const override {
    UnreadKeys unread;
    unread.add(reward_.unread_keys(RewardsRead::Totals), "reward");
    return unread;
  }

  void compose(Method& method) const override {
    start_base(method, reward_);
    method.credit.push_back(leave_one_out(group_));
    ObjectiveOptions& objective = method.objective;
    objective.kl_coefficient = 0.01;
    if (preset_ == Preset::Code) objective.entropy_coefficient = 0.001;
    if (preset_ != Preset::Paper) return;
    objective.kl_coefficient = 0;
    objective.kl_in_reward = 0.03;
    objective.reduction = Reduction::SequenceMeanTokenSum;
    objective.dual_clip = 0;
  }

 private:
  Preset preset_ = Preset::Carnot;
  LeaveOneOutOptions group_{};
  RewardOptions reward_{};
};

}  // namespace

MethodEntry rloo_entry() {
  return {.name = "rloo",
          .paper = "2402.14740",
          .summary = "a trajectory's reward against the mean of the others",
          .is_base = true,
          .is_add_on = false,
          .presets = kPresets,
          .make = make_method<Rloo>};
}

}  // namespace carnot
