// method/gigpo.cpp -- Group-in-Group Policy Optimization, arXiv:2505.10978
#include "carnot/credit/step_group.h"
#include "carnot/method/base.h"
#include "carnot/method/entries.h"
#include "carnot/method/preset.h"

namespace carnot {
namespace {

class Gigpo final : public MethodOptions {
 public:
  void fields(FieldVisitor& visit) override {
    preset_field(visit, preset_,
                 [&] { statistics_ = preset_ == Preset::Code ? Statistics::Rows : Statistics::Trajectories; });
    step_.fields(visit);
    statistics_field(visit, statistics_);
    reward_section(visit, reward_);
  }

  void compose(Method& method) const override {
    if (!has_base(method)) {
      start_group_base(method, reward_, {.normalisation = step_.normalisation, .statistics = statistics_});
      method.objective.kl_coefficient = 0.01;
      if (preset_ == Preset::Code) method.objective.entropy_coefficient = 0.001;
    }
    method.credit.push_back(step_group(step_));
  }

 private:
  Preset preset_ = Preset::Paper;
  StepGroupOptions step_{};
  Statistics statistics_ = Statistics::Trajectories;
  RewardOptions reward_{};
};

}  // namespace

MethodEntry gigpo_entry() {
  return {.name = "gigpo",
          .paper = "2505.10978",
          .summary = "turns against other turns that began in the same state",
          .is_base = true,
          .is_add_on = true,
          .make = make_method<Gigpo>};
}

}  // namespace carnot
