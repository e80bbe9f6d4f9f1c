// method/actfocus.cpp -- ActFocus: the gradient goes to the tokens the environment acts on, arXiv:2605.14558
#include "carnot/credit/span_weight.h"
#include "carnot/method/entries.h"
#include "carnot/method/preset.h"

namespace carnot {
namespace {

constexpr PresetEntry kPresets[] = {
    {Preset::Paper, "alpha 0.1, beta 0.5 on the reference's energy; there is no public program"},
};

class ActFocus final : public MethodOptions {
 public:
  void fields(FieldVisitor& visit) override {
    preset_field(visit, kPresets);
    weight_.fields(visit);
  }

  void compose(Method& method) const override {
    method.signals.insert(Signal::LogProbOld);
    if (weight_.action > 0 && weight_.signal != WeightSignal::Surprisal) method.signals.insert(Signal::Reference);
    method.credit.push_back(span_weight(weight_));
  }

 private:
  SpanWeightOptions weight_{};
};

}  // namespace

MethodEntry actfocus_entry() {
  return {.name = "actfocus",
          .paper = "2605.14558",
          .summary = "think tokens weigh less, uncertain action tokens more",
          .is_base = false,
          .is_add_on = true,
          .presets = kPresets,
          .make = make_method<ActFocus>};
}

}  // namespace carnot
