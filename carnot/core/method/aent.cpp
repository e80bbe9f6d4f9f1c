// method/aent.cpp -- AEnt: clamped entropy bonus with an adaptive coefficient, arXiv:2509.03493
#include "carnot/core/method/method.h"

namespace carnot {
namespace {

constexpr PresetEntry kAentPresets[] = {
    {Preset::Paper, "clamp 0.4, a coefficient that follows the entropy from 2e-4"},
    {Preset::Code, "the program's GSM8K configuration: clamp 0.4, a coefficient of 2e-4 that stays"},
    {Preset::Readme, "the authors' example: clamp 0.3, a coefficient of 2e-4 that stays"},
    {Preset::Reported, "the runs whose scores the authors report: clamp 0.4, a coefficient of 2e-3 that stays"},
};

class Aent final : public MethodOptions {
  void keys(MethodKeys& keys) override {
    keys.preset(kAentPresets, preset_, [&] {
      adaptive_.enabled = preset_ == Preset::Paper;
      clamp_ = preset_ == Preset::Readme ? 0.3 : 0.4;
      coefficient_ = preset_ == Preset::Reported ? 2e-3 : 2e-4;
    });
    keys.visit.field("coefficient", coefficient_, "weight of the bonus, at the start; 0 with a fixed coefficient: off",
                     at_least(0));
    keys.visit.field("clamp", clamp_, "share of the vocabulary, the least likely, left out of the entropy",
                     {.low = 0, .high = 1, .open_high = true});
    keys.add("adaptive", adaptive_, "lets the coefficient follow the entropy");
  }

  void compose(Method& method) const override {
    if (coefficient_ == 0 && !adaptive_.enabled) return;
    if (method.objective.entropy_coefficient > 0)
      method.warnings.push_back("aent replaces the base's entropy bonus: two bonuses would add up unseen");
    method.objective.entropy_coefficient = coefficient_;
    method.objective.entropy_clamp = clamp_;
    method.objective.adaptive_entropy = adaptive_;
  }

  Preset preset_ = Preset::Paper;
  double coefficient_ = 2e-4;
  double clamp_ = 0.4;
  AdaptiveEntropyOptions adaptive_{.enabled = true};
};

}  // namespace

std::unique_ptr<MethodOptions> aent() { return std::make_unique<Aent>(); }

}  // namespace carnot
