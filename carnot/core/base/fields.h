// base/fields.h -- an options struct lists its fields once; parsing, printing, --help and the docs table follow.
//
//   struct GrpoOptions {
//     double clip_low = 0.2;
//     void fields(FieldVisitor& visit) {
//       visit.field("clip_low", clip_low, "the ratio is kept above 1 - clip_low", at_least(0));
//     }
//   };
//
// A visitor reads or writes the fields it visits. Nothing here depends on YAML, JSON or the command line.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace carnot {

/// The largest magnitude of 32-bit integer fields and of counts.
inline constexpr double kLargestCount = 1e9;

/// The values that a field accepts. Numbers: finite, and low <= x <= high (strictly inside where `open_*`). Words: one
/// of `words`.
struct Limits {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool open_low = false;
  bool open_high = false;
  std::vector<std::string> words{};
};

Limits at_least(double low);
Limits above(double low);
Limits between(double low, double high);
/// low to kLargestCount: for 64-bit counts, so that sums and small multiples of them cannot overflow.
Limits count_from(double low);
Limits one_of(std::vector<std::string> words);

/// Empty if `value` is acceptable; otherwise what was expected ("a number of at least 0").
std::string violation(const Limits& limits, double value);
std::string violation(const Limits& limits, std::string_view value);

/// What the limits accept, in words, for help texts; empty if there are no limits.
std::string describe(const Limits& limits);

class FieldVisitor {
 public:
  virtual ~FieldVisitor() = default;

  virtual void field(std::string_view name, bool& value, std::string_view help) = 0;
  virtual void field(std::string_view name, std::int64_t& value, std::string_view help, const Limits& limits = {}) = 0;
  virtual void field(std::string_view name, double& value, std::string_view help, const Limits& limits = {}) = 0;
  virtual void field(std::string_view name, std::string& value, std::string_view help, const Limits& limits = {}) = 0;
  virtual void field(std::string_view name, std::vector<double>& value, std::string_view help,
                     const Limits& limits = {}) = 0;
  virtual void field(std::string_view name, std::vector<std::string>& value, std::string_view help,
                     const Limits& limits = {}) = 0;

  /// A nested group of fields: `options.fields(*this)` between the two calls. Use section() below.
  virtual void begin_section(std::string_view name, std::string_view help) = 0;
  virtual void end_section() = 0;

  /// An int field is visited as a 64-bit integer, with limits of at most kLargestCount.
  void field(std::string_view name, int& value, std::string_view help, Limits limits = {});
};

/// Visits the fields of `options` under `name.`.
template <class Options>
void section(FieldVisitor& visit, std::string_view name, Options& options, std::string_view help) {
  visit.begin_section(name, help);
  options.fields(visit);
  visit.end_section();
}

/// An enum field by its words: `words[i]` names the enumerator with value i.
template <class Enum>
void enum_field(FieldVisitor& visit, std::string_view name, Enum& value, const std::vector<std::string>& words,
                std::string_view help) {
  std::string word = words[static_cast<std::size_t>(value)];
  visit.field(name, word, help, one_of(words));
  for (std::size_t i = 0; i < words.size(); ++i)
    if (words[i] == word) value = static_cast<Enum>(i);
}

}  // namespace carnot
