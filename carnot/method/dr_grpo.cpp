// method/dr_grpo.cpp -- GRPO without the biases towards easy groups and long answers, arXiv:2503.20783
#include "carnot/method/base.h"
#include "carnot/method/entries.h"
#include "carnot/method/preset.h"

namespace carnot {
namespace {

class DrGrpo final : public MethodOptions {
 public:
  void fields(FieldVisitor& visit) override {
    only_paper_preset(visit);
    reward_section(visit, reward_);
  }

  void compose(Method& method) const override {
    start_group_base(method, reward_, {.normalisation = {.divide_by_std = false}});
    method.objective.reduction = Reduction::TokenSumOverConstant;
  }

 private:
  RewardOptions reward_{};
};

}  // namespace

MethodEntry dr_grpo_entry() {
  return {.name = "dr_grpo",
          .paper = "2503.20783",
          .summary = "GRPO without division by deviation or length",
          .is_base = true,
          .is_add_on = false,
          .make = make_method<DrGrpo>};
}

}  // namespace carnot
