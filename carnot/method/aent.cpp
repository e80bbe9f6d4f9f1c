// method/aent.cpp -- AEnt: clamped entropy bonus with an adaptive coefficient, arXiv:2509.03493
#include "carnot/method/entries.h"
#include "carnot/method/preset.h"

namespace carnot {
namespace {

constexpr PresetEntry kPresets[] = {
    {Preset::Paper, "a coefficient that follows the entropy"},
    {Preset::Code, "a fixed coefficient"},
};

class Aent final : public MethodOptions {
 public:
  void fields(FieldVisitor& visit) override {
    preset_field(visit, kPresets, preset_, [&] { adaptive_.enabled = preset_ == Preset::Paper; });
    visit.field("coefficient", coefficient_, "weight of the bonus, at the start; 0 with a fixed coefficient: off",
                at_least(0));
    visit.field("clamp", clamp_, "share of the vocabulary, the least likely, left out of the entropy",
                {.low = 0, .high = 1, .open_high = true});
    section(visit, "adaptive", adaptive_, "lets the coefficient follow the entropy");
  }

  UnreadKeys unread_keys() const override {
    UnreadKeys unread;
    unread.add(adaptive_.unread_keys(), "adaptive");
    return unread;
  }

  void compose(Method& method) const override {
    if (coefficient_ == 0 && !adaptive_.enabled) return;
    if (method.objective.entropy_coefficient > 0)
      method.warnings.push_back("aent replaces the base's entropy bonus: two bonuses would add up unseen");
    method.objective.entropy_coefficient = coefficient_;
    method.objective.entropy_clamp = clamp_;
    method.objective.adaptive_entropy = adaptive_;
  }

 private:
  Preset preset_ = Preset::Paper;
  double coefficient_ = 2e-4;
  double clamp_ = 0.4;
  AdaptiveEntropyOptions adaptive_{.enabled = true};
};

}  // namespace

MethodEntry aent_entry() {
  return {.name = "aent",
          .paper = "2509.03493",
          .summary = "entropy bonus over the likely part of the vocabulary, adaptive coefficient",
          .is_base = false,
          .is_add_on = true,
          .presets = kPresets,
          .make = make_method<Aent>};
}

}  // namespace carnot
