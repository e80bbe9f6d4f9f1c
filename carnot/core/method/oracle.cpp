// method/oracle.cpp -- what each turn changed in the policy's mean score, measured by continuations: VinePPO,
// arXiv:2410.01679, by turns instead of lines of reasoning
#include "carnot/core/credit/measured_advantage.h"
#include "carnot/core/method/base.h"

namespace carnot {
namespace {

constexpr PresetEntry kOraclePresets[] = {
    {Preset::Paper, "VinePPO's advantages, V after a turn minus V before it, from 9 continuations of each state"},
};

class Oracle final : public MethodOptions {
  void keys(MethodKeys& keys) override {
    keys.preset(kOraclePresets);
    keys.visit.field("continuations", continuations_,
                     "trajectories that continue from each state while a step is measured", count_from(1));
  }

  void compose(Method& method) const override {
    start_base(method, {});
    method.continuations = continuations_;
    method.credit.push_back(measured_advantage());
  }

  int continuations_ = 9;
};

}  // namespace

std::unique_ptr<MethodOptions> oracle() { return std::make_unique<Oracle>(); }

}  // namespace carnot
