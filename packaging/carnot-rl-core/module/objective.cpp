// What a method asks of the loss, and AEPO's scale of advantages.
#include "carnot/core/credit/entropy_modulate.h"
#include "carnot/core/recompute/recompute_credit.h"
#include "values.h"

namespace carnot::python {
namespace {

/// Collects fields in a dict, with dotted names.
class DictFields final : public FieldVisitor {
 public:
  using FieldVisitor::field;
  void field(std::string_view name, bool& value, std::string_view) override { put(name, value); }
  void field(std::string_view name, std::int64_t& value, std::string_view, const Limits&) override { put(name, value); }
  void field(std::string_view name, double& value, std::string_view, const Limits&) override { put(name, value); }
  void field(std::string_view name, std::string& value, std::string_view, const Limits&) override { put(name, value); }
  void field(std::string_view name, std::vector<double>& value, std::string_view, const Limits&) override {
    put(name, value);
  }
  void field(std::string_view name, std::vector<std::string>& value, std::string_view, const Limits&) override {
    put(name, value);
  }
  void begin_section(std::string_view name, std::string_view) override {
    prefixes_.push_back(prefixes_.back() + std::string(name) + ".");
  }
  void end_section() override { prefixes_.pop_back(); }

  const nb::dict& all() const { return all_; }

 private:
  template <class T>
  void put(std::string_view name, const T& value) {
    all_[nb::cast(prefixes_.back() + std::string(name))] = nb::cast(value);
  }

  std::vector<std::string> prefixes_{""};
  nb::dict all_{};
};

nb::dict objective(const std::string& method, const nb::dict& options) {
  Method built = value_or_raise(read_method({.method = method, .overrides = settings_of(options)}));
  DictFields fields;
  built.objective.fields(fields);
  return fields.all();
}

constexpr const char* kObjectiveHelp =
    R"(The `objective` section of a recipe as `method` composes it: "clip_low", "entropy_scale", "adaptive_entropy.rate"
and so on. `options` are those of credit().)";
constexpr const char* kScaleHelp =
    R"(AEPO's factors of advantages, 1 + strength (H - mean) / deviation, of tokens with these entropies: all sampled
tokens of an optimizer step.)";

}  // namespace

void bind_objective(nb::module_& module) {
  module.def("objective", objective, nb::arg("method"), nb::arg("options") = nb::dict(), kObjectiveHelp,
             nb::sig("def objective(method: str, options: dict[str, object] = {}) -> dict[str, object]"));
  module.def(
      "entropy_scale",
      [](const NumbersIn& entropies, double strength) {
        auto* factors = new std::vector<double>(entropy_scale(vector_of(entropies), strength));
        const nb::capsule owner(factors, [](void* own) noexcept { delete static_cast<std::vector<double>*>(own); });
        return array_over(*factors, owner);
      },
      nb::arg("entropies"), nb::arg("strength"), kScaleHelp);
}

}  // namespace carnot::python
