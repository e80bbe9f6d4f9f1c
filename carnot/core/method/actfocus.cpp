// method/actfocus.cpp -- ActFocus: the gradient goes to the tokens the environment acts on, arXiv:2605.14558
#include "carnot/core/credit/span_weight.h"
#include "carnot/core/method/method.h"

namespace carnot {
namespace {

constexpr PresetEntry kActfocusPresets[] = {
    {Preset::Paper, "alpha 0.1, beta 0.5 on the reference's energy; there is no public program"},
};

class Actfocus final : public MethodOptions {
  void keys(MethodKeys& keys) override {
    keys.preset(kActfocusPresets);
    keys.add(weight_);
  }

  void compose(Method& method) const override { method.credit.push_back(span_weight(weight_)); }

  SpanWeightOptions weight_{};
};

}  // namespace

std::unique_ptr<MethodOptions> actfocus() { return std::make_unique<Actfocus>(); }

}  // namespace carnot
