// method/grpo.cpp -- Group Relative Policy Optimization, arXiv:2402.03300
#include "carnot/credit/other_baselines.h"
#include "carnot/method/base.h"
#include "carnot/method/entries.h"
#include "carnot/method/preset.h"

namespace carnot {
namespace {

enum class Estimator { GroupRelative, LengthWeighted, NonzeroScaled, BestOfGroup };

class Grpo final : public MethodOptions {
 public:
  void fields(FieldVisitor& visit) override {
    only_paper_preset(visit);
    enum_field(visit, "estimator", estimator_, {"group_relative", "length_weighted", "nonzero_scaled", "best_of_group"},
               "how a trajectory is compared with its group: GRPO, OPO, GPG, or GRPO for pass@k");
    group_.fields(visit);
    reward_section(visit, reward_);
  }

  void compose(Method& method) const override {
    start_base(method, reward_);
    method.credit.push_back(estimate());
    method.objective.kl_coefficient = 0.001;
  }

 private:
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
          .make = make_method<Grpo>};
}

}  // namespace carnot
