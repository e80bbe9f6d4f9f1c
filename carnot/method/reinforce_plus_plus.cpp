// method/reinforce_plus_plus.cpp -- REINFORCE++, with or without the group's mean as baseline, arXiv:2501.03262
#include "carnot/credit/reinforce.h"
#include "carnot/method/base.h"
#include "carnot/method/entries.h"
#include "carnot/method/preset.h"

namespace carnot {
namespace {

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
    preset_field(visit, preset_, [&] { quirks_.restart_at_observations = preset_ == Preset::Code; });
    reinforce_.fields(visit);
    reward_section(visit, reward_);
    section(visit, "compat", quirks_, "single quirks of published code");
  }

  void compose(Method& method) const override {
    start_base(method, reward_);
    ReinforceOptions options = reinforce_;
    options.restart_at_observations = quirks_.restart_at_observations;
    method.credit.push_back(reinforce(options));
    method.objective.kl_coefficient = 0.001;
  }

 private:
  Preset preset_ = Preset::Paper;
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
          .make = make_method<ReinforcePlusPlus>};
}

}  // namespace carnot
