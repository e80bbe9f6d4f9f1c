// method/rloo.cpp -- REINFORCE leave-one-out, arXiv:2402.14740, trained with the clipped loss as its users do
#include "carnot/credit/leave_one_out.h"
#include "carnot/method/base.h"
#include "carnot/method/entries.h"
#include "carnot/method/preset.h"

namespace carnot {
namespace {

class Rloo final : public MethodOptions {
 public:
  void fields(FieldVisitor& visit) override {
    preset_field(visit, preset_, [&] { group_.statistics = Statistics::Rows; });
    group_.fields(visit);
    reward_section(visit, reward_);
  }

  void compose(Method& method) const override {
    start_base(method, reward_);
    method.credit.push_back(leave_one_out(group_));
    method.objective.kl_coefficient = 0.01;
    if (preset_ == Preset::Code) method.objective.entropy_coefficient = 0.001;
  }

 private:
  Preset preset_ = Preset::Paper;
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
          .make = make_method<Rloo>};
}

}  // namespace carnot
