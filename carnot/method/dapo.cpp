// method/dapo.cpp -- Decoupled clip and dynamic sampling, arXiv:2503.14476
#include "carnot/method/base.h"
#include "carnot/method/entries.h"
#include "carnot/method/preset.h"

namespace carnot {
namespace {

class Dapo final : public MethodOptions {
 public:
  void fields(FieldVisitor& visit) override {
    only_paper_preset(visit);
    visit.field("max_refills", max_refills_, "batches of further rollouts for groups without a signal", at_least(0));
    group_.fields(visit);
    reward_section(visit, reward_);
  }

  void compose(Method& method) const override {
    start_group_base(method, reward_, group_);
    method.filter = drop_zero_variance(max_refills_);
    method.objective.clip_high = 0.28;
    method.objective.dual_clip = 10;
  }

 private:
  int max_refills_ = 10;
  GroupRelativeOptions group_{};
  RewardOptions reward_{.overlong_limit = 20480};
};

}  // namespace

MethodEntry dapo_entry() {
  return {.name = "dapo",
          .paper = "2503.14476",
          .summary = "GRPO with a higher upper clip, dropped groups without a signal, penalty on overlong answers",
          .is_base = true,
          .is_add_on = false,
          .make = make_method<Dapo>};
}

}  // namespace carnot
