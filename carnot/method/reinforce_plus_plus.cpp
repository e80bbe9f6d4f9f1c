// method/reinforce_plus_plus.cpp -- REINFORCE++, with or without the group's mean as baseline, arXiv:2501.03262
#include "carnot/credit/reinforce.h"
#include "carnot/method/base.h"
#include "carnot/method/entries.h"
#include "carnot/method/preset.h"

namespace carnot {
namespace {

constexpr PresetEntry kPresets[] = {
    {Preset::Carnot, "KL 0.001 in the loss; returns pass observations"},
    {Preset::Paper,
     "KL 0.01 in the reward (version 1, eq. 4, table 1), none in the loss, no dual clip; returns pass observations"},
    {Preset::Code,
     "verl: KL 0.001 in the loss with k2, returns start anew behind observations, a group of one keeps its reward"},
};

struct ReinforceQuirks {
  bool restart_at_observations = false;

  void fields(FieldVisitor& visit) {
    visit.field("restart_at_observations", restart_at_observations,
                "returns start anew behind observations, so that only the last turn sees the outcome");
  }
};

class ReinforcePlusPlus final : public MethodOptions {
 public:
  void fields(FieldVisitor& visit) override {
    preset_field(visit, kPresets, preset_, [&] { apply_preset(); });
    reinforce_.fields(visit);
    reward_section(visit, reward_);
    section(visit, "compat", quirks_, "single quirks of published code");
  }

  UnreadKeys unread_keys() const override {
    UnreadKeys unread;
    const bool totals = reinforce_.group_baseline;
    unread.add(reinforce_.unread_keys());
    if (totals) unread.add({"compat.restart_at_observations"}, "group_baseline takes no returns");
    unread.add(reward_.unread_keys(totals ? RewardsRead::Totals : RewardsRead::Tokens), "reward");
    return unread;
  }

  void compose(Method& method) const override {
    start_base(method, reward_);
    ReinforceOptions options = reinforce_;
    options.restart_at_observations = quirks_.restart_at_observations;
    method.credit.push_back(reinforce(options));
    ObjectiveOptions& objective = method.objective;
    objective.kl_coefficient = 0.001;
    if (preset_ == Preset::Code) objective.kl_estimator = KlEstimator::K2;
    if (preset_ != Preset::Paper) return;
    objective.kl_coefficient = 0;
    objective.kl_in_reward = 0.01;
    objective.dual_clip = 0;
  }

 private:
  void apply_preset() {
    const bool code = preset_ == Preset::Code;
    quirks_.restart_at_observations = code;
    reinforce_.singleton = code ? Singleton::Raw : Singleton::Zero;
    reinforce_.whitening.count_epsilon = code ? 1e-8 : 0;
  }

  Preset preset_ = Preset::Carnot;
  ReinforceOptions reinforce_{};
  ReinforceQuirks quirks_{};
  RewardOptions reward_{};
};

}  // namespace

MethodEntry reinforce_plus_plus_entry() {
  return {.name = "reinforce_plus_plus",
          .paper = "2501.03262",
          .summary = "returns whitened over the step's tokens",
          .is_base = true,
          .is_add_on = false,
          .presets = kPresets,
          .make = make_method<ReinforcePlusPlus>};
}

}  // namespace carnot
