// testing/field_settings.h -- a visitor that sets options by their dotted names and lists what it saw.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "carnot/core/base/fields.h"

namespace carnot::testing {

/// Sets each field whose full name ("aem.lambda") has a value; numbers and words are written as strings,
/// lists of numbers with commas between them.
class FieldSettings final : public FieldVisitor {
 public:
  explicit FieldSettings(std::map<std::string, std::string> values = {}) : values_(std::move(values)) {}

  using FieldVisitor::field;
  void field(std::string_view name, bool& value, std::string_view help) override;
  void field(std::string_view name, std::int64_t& value, std::string_view help, const Limits& limits) override;
  void field(std::string_view name, double& value, std::string_view help, const Limits& limits) override;
  void field(std::string_view name, std::string& value, std::string_view help, const Limits& limits) override;
  void field(std::string_view name, std::vector<double>& value, std::string_view help, const Limits& limits) override;
  void field(std::string_view name, std::vector<std::string>& value, std::string_view help,
             const Limits& limits) override;
  void begin_section(std::string_view name, std::string_view help) override;
  void end_section() override;

  const std::vector<std::string>& names() const { return names_; }         ///< every field seen, in order
  std::vector<std::string> unused() const;                                 ///< settings that no field took
  std::vector<std::string> undocumented() const { return undocumented_; }  ///< fields without help

 private:
  /// The setting for this field, or null.
  const std::string* find(std::string_view name, std::string_view help);

  std::map<std::string, std::string> values_;
  std::set<std::string> used_{};
  std::vector<std::string> names_{};
  std::vector<std::string> undocumented_{};
  std::string prefix_{};
};

}  // namespace carnot::testing
