// method/tree_grpo.cpp -- Tree-GRPO, arXiv:2509.21240
#include "carnot/core/branch/tree_expand.h"
#include "carnot/core/credit/tree_relative.h"
#include "carnot/core/method/base.h"

namespace carnot {
namespace {

constexpr PresetEntry kTreeGrpoPresets[] = {
    {Preset::Paper, "a tree of one leaf gets 0"},
    {Preset::Code, "a tree of one leaf keeps its reward; entropy bonus 0.001"},
};

class TreeGrpo final : public MethodOptions {
  void keys(MethodKeys& keys) override {
    keys.preset(kTreeGrpoPresets, preset_, [&] { relative_.normalisation.singleton = singleton_of(preset_); });
    keys.add("branch", branch_, "how trees grow");
    keys.add(relative_);
    const bool per_token = relative_.estimator == TreeEstimator::PerToken;
    keys.reward(reward_, per_token ? RewardsRead::Tokens : RewardsRead::Totals);
  }

  void compose(Method& method) const override {
    start_base(method, reward_);
    method.branch = tree_expand(branch_);
    method.credit.push_back(tree_relative(relative_));
    method.objective.kl_coefficient = 0.001;
    if (preset_ == Preset::Code) method.objective.entropy_coefficient = 0.001;
  }

  Preset preset_ = Preset::Paper;
  TreeExpandOptions branch_{};
  TreeRelativeOptions relative_{};
  RewardOptions reward_{};
};

}  // namespace

std::unique_ptr<MethodOptions> tree_grpo() { return std::make_unique<TreeGrpo>(); }

}  // namespace carnot
