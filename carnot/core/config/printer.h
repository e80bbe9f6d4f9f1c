// config/printer.h -- options as a table of rows: printed as a recipe, as --help, and as the docs' table.
//
//   FieldTable table;
//   table.add("train", train_options);
//   to_yaml(table)  // reads back to equal options
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/fields.h"

namespace carnot {

struct FieldRow {
  std::string key{};      ///< dotted
  std::string type{};     ///< bool, int, float, str, list[float], list[str]
  std::string value{};    ///< the present one, in YAML
  std::string accepts{};  ///< in words; empty if everything of the type goes
  std::string help{};
};

/// Collects the fields it is shown, in order. A key that comes again replaces the earlier value in its place.
class FieldTable final : public FieldVisitor {
 public:
  /// The fields of `options` below `section` ("" for the top level).
  template <class Options>
  void add(std::string_view section, Options& options) {
    enter(section);
    options.fields(*this);
    end_section();
  }

  const std::vector<FieldRow>& rows() const { return rows_; }

  void field(std::string_view name, bool& value, std::string_view help) override;
  void field(std::string_view name, std::int64_t& value, std::string_view help, const Limits& limits) override;
  void field(std::string_view name, double& value, std::string_view help, const Limits& limits) override;
  void field(std::string_view name, std::string& value, std::string_view help, const Limits& limits) override;
  void field(std::string_view name, std::vector<double>& value, std::string_view help, const Limits& limits) override;
  void field(std::string_view name, std::vector<std::string>& value, std::string_view help,
             const Limits& limits) override;
  void begin_section(std::string_view name, std::string_view help) override;
  void end_section() override;

 private:
  void enter(std::string_view section);
  void put(std::string_view name, std::string type, std::string value, std::string accepts, std::string_view help);

  std::vector<std::string> prefixes_{""};
  std::vector<FieldRow> rows_{};
};

/// `text` broken at spaces; every line begins with `indent` and ends with a line break.
std::string wrapped(const std::string& text, const std::string& indent, std::size_t width);

/// A recipe that sets every field to its present value.
std::string to_yaml(const FieldTable& table);

/// One entry per field, for a terminal of 100 columns: key, type, present value as the default, limits, help.
std::string help_text(const FieldTable& table);

}  // namespace carnot
