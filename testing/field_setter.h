// testing/field_setter.h -- sets one option by its name, from JSON text: `set_field(options, "size", "5")`.
#pragma once

#include <string>
#include <string_view>

#include "carnot/base/fields.h"

namespace carnot::testing {

/// Sets the field `name` of whatever `visit_fields(FieldVisitor&)` shows. False where there is no such field, or the
/// value is not of its type or outside its limits.
class FieldSetter : public FieldVisitor {
 public:
  FieldSetter(std::string_view name, std::string_view json) : name_(name), json_(json) {}

  using FieldVisitor::field;
  void field(std::string_view name, bool& value, std::string_view help) override;
  void field(std::string_view name, std::int64_t& value, std::string_view help, const Limits& limits) override;
  void field(std::string_view name, double& value, std::string_view help, const Limits& limits) override;
  void field(std::string_view name, std::string& value, std::string_view help, const Limits& limits) override;
  void field(std::string_view, std::vector<double>&, std::string_view, const Limits&) override {}
  void field(std::string_view, std::vector<std::string>&, std::string_view, const Limits&) override {}
  void begin_section(std::string_view, std::string_view) override {}
  void end_section() override {}

  bool found() const { return found_; }

 private:
  std::string name_;
  std::string json_;
  bool found_ = false;
};

template <class Options>
bool set_field(Options& options, std::string_view name, std::string_view json) {
  FieldSetter setter(name, json);
  options.fields(setter);
  return setter.found();
}

}  // namespace carnot::testing
