// method/aem.cpp -- Adaptive Entropy Modulation, arXiv:2605.00425
#include "carnot/core/credit/entropy_modulate.h"
#include "carnot/core/method/method.h"

namespace carnot {
namespace {

constexpr PresetEntry kAemPresets[] = {
    {Preset::Paper, "lambda 1 within the group, gate 0.1 nats; there is no public program"},
};

class Aem final : public MethodOptions {
  void keys(MethodKeys& keys) override {
    keys.preset(kAemPresets);
    keys.add(modulate_);
  }

  void compose(Method& method) const override { method.credit.push_back(entropy_modulate(modulate_)); }

  EntropyModulateOptions modulate_{};
};

}  // namespace

std::unique_ptr<MethodOptions> aem() { return std::make_unique<Aem>(); }

}  // namespace carnot
