// method/grpo.cpp -- Group Relative Policy Optimization, arXiv:2402.03300
#include "carnot/credit/other_baselines.h"
#include "carnot/method/base.h"
#include "carnot/method/entries.h"
#include "carnot/method/preset.h"

namespace carnot {
namespace {

constexpr PresetEntry kPresets[] = {
    {Preset::Carnot, "token mean, dual clip 3, kl_coefficient 0.001; a group of one gets 0"},
    {Preset::Paper, "sequence_mean_token_mean (eq. 3), no dual clip, kl_coefficient 0.04 (section 4.2)"},
    {Preset::Code, "as carnot, but a group of one keeps its reward (verl)"},
};

enum class Estimator { GroupRelative, LengthWeighted, NonzeroScaled, BestOfGroup };

class Grpo final : public MethodOptions {
 public:
  void fields(FieldVisitor& visit) override {
    preset_field(visit, kPresets, preset_, [&] {
      group_.normalisation.singleton = preset_ == Preset::Code ? Singleton::Raw : Singleton::Zero;
    });
    enum_field(visit, "estimator", estimator_, {"group_relative", "length_weighted", "nonzero_scaled", "best_of_group"},
               "how a trajectory is compared with its group: GRPO, OPO, GPG, or GRPO for pass@k");
    group_.fields(visit);
    reward_section(visit, reward_);
  }

  UnreadKeys unread_keys() const override {
    UnreadKeys unread;
    unread.add(unread_by_estimator());
    unread.add(group_.normalisation.unread_keys());
    unread.add(reward_.unread_keys(RewardsRead::Totals), "reward");
    return unread;
  }

  void compose(Method& method) const override {
    start_base(method, reward_);
    method.credit.push_back(estimate());
    method.objective.kl_coefficient = 0.001;
    if (preset_ != Preset::Paper) return;
    method.objective.kl_coefficient = 0.04;
    mean_over_sequences(method.objective);
  }

 private:
  /// What the estimators beside GRPO's leave unread.
  UnreadKeys unread_by_estimator() const {
    constexpr std::string_view kWhy = "grpo.estimator has no such choice";
    UnreadKeys unread;
    if (estimator_ == Estimator::GroupRelative) return unread;
    unread.add({"deviation", "variance_epsilon", "variance_floor", "statistics"}, kWhy);
    if (estimator_ == Estimator::BestOfGroup)
      unread.add({"singleton"}, kWhy);
    else
      unread.add({"divide_by_std", "epsilon"}, kWhy);
    return unread;
  }

  CreditRule estimate() const {
    switch (estimator_) {
      case Estimator::LengthWeighted: return length_weighted_baseline(group_.normalisation.singleton);
      case Estimator::NonzeroScaled: return nonzero_scaled(group_.normalisation.singleton);
      case Estimator::BestOfGroup:
        return best_of_group(
            {.divide_by_std = group_.normalisation.divide_by_std, .epsilon = group_.normalisation.epsilon});
      case Estimator::GroupRelative: break;
    }
    return group_relative(group_);
  }

  Preset preset_ = Preset::Carnot;
  Estimator estimator_ = Estimator::GroupRelative;
  GroupRelativeOptions group_{};
  RewardOptions reward_{};
};

}  // namespace

MethodEntry grpo_entry() {
  return {.name = "grpo",
          .paper = "2402.03300",
          .summary = "a trajectory's reward against its group's mean and deviation",
          .is_base = true,
          .is_add_on = false,
          .presets = kPresets,
          .make = make_method<Grpo>};
}

}  // namespace carnot
