// Coefficients that adapt to the quantity they act on.
#include "carnot/core/objective/adaptive_coefficient.h"
#include "values.h"

namespace carnot::python {
namespace {

struct Entropy {
  AdaptiveEntropyOptions options{};
  EntropyCoefficient state{};
};

struct Kl {
  AdaptiveKlOptions options{};
  KlCoefficient state{};
};

void make_entropy(Entropy* self, double coefficient, double low, double high, double rate, double least, double most,
                  std::int64_t warmup) {
  new (self) Entropy{
      .options =
          {.enabled = true, .low = low, .high = high, .rate = rate, .least = least, .most = most, .warmup = warmup},
      .state = {.coefficient = coefficient}};
}

void make_kl(Kl* self, double coefficient, double target, double horizon, double clip) {
  new (self) Kl{.options = {.enabled = true, .target = target, .horizon = horizon, .clip = clip},
                .state = {.coefficient = coefficient}};
}

constexpr const char* kEntropyHelp =
    R"(AEnt's coefficient (arXiv:2509.03493): rises by `rate` times the distance while the entropy is below `low`, falls
while it is above `high` (nats), within [least, most]; constant for the first steps, `warmup` of them and one.)";
constexpr const char* kKlHelp =
    "The controller of arXiv:1909.08593: proportional, clipped, towards a `target` KL; `horizon` in trajectories.";

}  // namespace

void bind_coefficients(nb::module_& module) {
  const AdaptiveEntropyOptions entropy;
  nb::class_<Entropy>(module, "EntropyCoefficient", kEntropyHelp)
      .def("__init__", make_entropy, nb::arg("coefficient"), nb::kw_only(), nb::arg("low") = entropy.low,
           nb::arg("high") = entropy.high, nb::arg("rate") = entropy.rate, nb::arg("least") = entropy.least,
           nb::arg("most") = entropy.most, nb::arg("warmup") = entropy.warmup)
      .def(
          "update", [](Entropy& self, double mean) { self.state.update(self.options, mean); }, nb::arg("entropy"),
          "After a step whose update had this mean (clamped) entropy; the new value is for the next step.")
      .def_prop_rw(
          "coefficient", [](const Entropy& self) { return self.state.coefficient; },
          [](Entropy& self, double value) { self.state.coefficient = value; })
      .def_prop_rw(
          "step", [](const Entropy& self) { return self.state.step; },
          [](Entropy& self, std::int64_t value) { self.state.step = value; }, "steps taken");
  const AdaptiveKlOptions kl;
  nb::class_<Kl>(module, "KlCoefficient", kKlHelp)
      .def("__init__", make_kl, nb::arg("coefficient"), nb::kw_only(), nb::arg("target") = kl.target,
           nb::arg("horizon") = kl.horizon, nb::arg("clip") = kl.clip)
      .def(
          "update",
          [](Kl& self, double mean, double trajectories) { self.state.update(self.options, mean, trajectories); },
          nb::arg("kl"), nb::arg("trajectories"), "After a step over `trajectories` with this mean KL.")
      .def_prop_rw(
          "coefficient", [](const Kl& self) { return self.state.coefficient; },
          [](Kl& self, double value) { self.state.coefficient = value; });
}

}  // namespace carnot::python
