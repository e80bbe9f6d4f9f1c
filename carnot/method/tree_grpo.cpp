// method/tree_grpo.cpp -- Tree-GRPO, arXiv:2509.21240
#include "carnot/branch/tree_expand.h"
#include "carnot/credit/tree_relative.h"
#include "carnot/method/base.h"
#include "carnot/method/entries.h"
#include "carnot/method/preset.h"

namespace carnot {
namespace {

constexpr PresetEntry kPresets[] = {
    {Preset::Paper, "a tree of one leaf gets 0"},
    {Preset::Code, "a tree of one leaf keeps its reward; entropy bonus 0.001"},
};

class TreeGrpo final : public MethodOptions {
 public:
  void fields(FieldVisitor& visit) override {
    preset_field(visit, kPresets, preset_, [&] {
      relative_.normalisation.singleton = preset_ == Preset::Code ? Singleton::Raw : Singleton::Zero;
    });
    section(visit, "branch", branch_, "how trees grow");
    relative_.fields(visit);
    reward_section(visit, reward_);
  }

  UnreadKeys unread_keys() const override {
    UnreadKeys unread;
    const bool tokens = relative_.estimator == TreeEstimator::PerToken;
    unread.add(relative_.normalisation.unread_keys());
    unread.add(reward_.unread_keys(tokens ? RewardsRead::Tokens : RewardsRead::Totals), "reward");
    return unread;
  }

  void compose(Method& method) const override {
    start_base(method, reward_);
    method.branch = tree_expand(branch_);
    method.credit.push_back(tree_relative(relative_));
    method.objective.kl_coefficient = 0.001;
    if (preset_ == Preset::Code) method.objective.entropy_coefficient = 0.001;
  }

 private:
  Preset preset_ = Preset::Paper;
  TreeExpandOptions branch_{};
  TreeRelativeOptions relative_{};
  RewardOptions reward_{};
};

}  // namespace

MethodEntry tree_grpo_entry() {
  return {.name = "tree_grpo",
          .paper = "2509.21240",
          .summary = "trees grown from random nodes; a leaf against its group and its tree",
          .is_base = true,
          .is_add_on = false,
          .presets = kPresets,
          .make = make_method<TreeGrpo>};
}

}  // namespace carnot
