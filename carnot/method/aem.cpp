// method/aem.cpp -- Adaptive Entropy Modulation, arXiv:2605.00425
#include "carnot/credit/entropy_modulate.h"
#include "carnot/method/entries.h"
#include "carnot/method/preset.h"

namespace carnot {
namespace {

constexpr PresetEntry kPresets[] = {
    {Preset::Paper, "lambda 1 within the group, gate 0.1 nats; there is no public program"},
};

class Aem final : public MethodOptions {
 public:
  void fields(FieldVisitor& visit) override {
    preset_field(visit, kPresets);
    modulate_.fields(visit);
  }

  void compose(Method& method) const override {
    method.signals.insert(Signal::LogProbOld);
    method.credit.push_back(entropy_modulate(modulate_));
  }

 private:
  EntropyModulateOptions modulate_{};
};

}  // namespace

MethodEntry aem_entry() {
  return {.name = "aem",
          .paper = "2605.00425",
          .summary = "advantages of responses scaled by how sure the policy was of them",
          .is_base = false,
          .is_add_on = true,
          .presets = kPresets,
          .make = make_method<Aem>};
}

}  // namespace carnot
