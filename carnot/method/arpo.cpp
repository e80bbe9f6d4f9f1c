// method/arpo.cpp -- Agentic Reinforced Policy Optimization, arXiv:2507.19849
#include "carnot/branch/entropy_branch.h"
#include "carnot/credit/shared_prefix.h"
#include "carnot/method/base.h"
#include "carnot/method/entries.h"
#include "carnot/method/preset.h"

namespace carnot {
namespace {

class Arpo final : public MethodOptions {
 public:
  void fields(FieldVisitor& visit) override {
    preset_field(visit, preset_, [&] {
      branch_.timing = preset_ == Preset::Code ? BranchTiming::SameTurn : BranchTiming::AfterObservation;
      branch_.measure.candidates = preset_ == Preset::Code ? 10 : 0;
    });
    section(visit, "branch", branch_, "where trajectories branch");
    visit.field("share_prefix", share_prefix_,
                "shared turns get the mean of their trajectories' advantages (hard form)");
    group_.fields(visit);
    reward_section(visit, reward_);
  }

  void compose(Method& method) const override {
    if (!has_base(method)) start_group_base(method, reward_, group_);
    method.branch = entropy_branch(branch_);
    method.signals.insert(Signal::TurnEntropy);
    if (share_prefix_) method.credit.push_back(shared_prefix());
  }

 private:
  Preset preset_ = Preset::Paper;
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
          .make = make_method<Arpo>};
}

}  // namespace carnot
