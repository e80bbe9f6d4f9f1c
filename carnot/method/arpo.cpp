// method/arpo.cpp -- Agentic Reinforced Policy Optimization, arXiv:2507.19849
#include "carnot/branch/entropy_branch.h"
#include "carnot/credit/shared_prefix.h"
#include "carnot/method/base.h"
#include "carnot/method/entries.h"
#include "carnot/method/preset.h"

namespace carnot {
namespace {

constexpr PresetEntry kPresets[] = {
    {Preset::Carnot,
     "branches with probability base + weight * rise of the turn behind an observation; GRPO's token mean"},
    {Preset::Paper,
     "branches where base + weight * rise is above 0.5 (eq. 5, appendix C.2); sequence_mean_token_mean, no dual clip"},
    {Preset::Code,
     "as carnot, but the turn that made the call decides, over its 10 likeliest tokens; a group of one keeps "
     "its reward"},
};

class Arpo final : public MethodOptions {
 public:
  void fields(FieldVisitor& visit) override {
    preset_field(visit, kPresets, preset_, [&] { apply_preset(); });
    section(visit, "branch", branch_, "where trajectories branch");
    visit.field("share_prefix", share_prefix_,
                "shared turns get the mean of their trajectories' advantages (hard form)");
  }

  void base_fields(FieldVisitor& visit) override {
    group_.fields(visit);
    reward_section(visit, reward_);
  }

  UnreadKeys unread_keys() const override {
    UnreadKeys unread;
    unread.add(branch_.unread_keys(), "branch");
    unread.add(group_.normalisation.unread_keys());
    unread.add(reward_.unread_keys(RewardsRead::Totals), "reward");
    return unread;
  }

  void compose(Method& method) const override {
    if (!has_base(method)) {
      start_group_base(method, reward_, group_);
      if (preset_ == Preset::Paper) mean_over_sequences(method.objective);
    }
    method.branch = entropy_branch(branch_);
    method.signals.insert(Signal::TurnEntropy);
    if (share_prefix_) method.credit.push_back(shared_prefix());
  }

 private:
  void apply_preset() {
    const bool code = preset_ == Preset::Code;
    branch_.rule = preset_ == Preset::Paper ? EntropyBranchRule::Threshold : EntropyBranchRule::Probability;
    branch_.timing = code ? BranchTiming::SameTurn : BranchTiming::AfterObservation;
    branch_.measure.candidates = code ? 10 : 0;
    group_.normalisation.singleton = code ? Singleton::Raw : Singleton::Zero;
  }

  Preset preset_ = Preset::Carnot;
  EntropyBranchOptions branch_{};
  bool share_prefix_ = false;
  GroupRelativeOptions group_{};
  RewardOptions reward_{};
};

}  // namespace

MethodEntry arpo_entry() {
  return {.name = "arpo",
          .paper = "2507.19849",
          .summary = "rollouts branch where entropy rises behind a tool's answer",
          .is_base = true,
          .is_add_on = true,
          .presets = kPresets,
          .make = make_method<Arpo>};
}

}  // namespace carnot
