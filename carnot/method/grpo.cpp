// method/grpo.cpp -- Group Relative Policy Optimization, arXiv:2402.03300
#include "carnot/credit/group_relative.h"
#include "carnot/method/entries.h"
#include "carnot/method/preset.h"

namespace carnot {
namespace {

class Grpo final : public MethodOptions {
 public:
  void fields(FieldVisitor& visit) override {
    only_paper_preset(visit);
    group_.fields(visit);
  }

  void compose(Method& method) const override {
    method.branch = independent();
    method.signals.insert(Signal::LogProbOld);
    method.credit.push_back(group_relative(group_));
    method.objective.kl_coefficient = 0.001;
  }

 private:
  GroupRelativeOptions group_{};
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
