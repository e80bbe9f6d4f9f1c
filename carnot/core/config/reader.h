// config/reader.h -- fills options from a document, and collects everything that is wrong with it.
//
//   ConfigReader reader(document);
//   reader.read("train", train_options);
//   reader.read("env", env_name);             // then the factory that env.name chose:
//   reader.read("env", *factory);
//   if (const Status status = reader.finish(); !status) ...  // every problem, a line each
//
// Sections may be read in several passes, also the same key twice. A key that no pass asked for is unknown.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/fields.h"
#include "carnot/core/base/result.h"
#include "carnot/core/config/document.h"

namespace carnot {

/// What happens to settings that nothing reads.
enum class Unread {
  Refused,    ///< a user wrote them
  PassedOver  ///< an earlier version of the program wrote them; overrides are still refused
};

/// A setting that was ignored.
struct PassedOver {
  std::string key{};
  std::string message{};  ///< where it is, and why it has no effect
};

class ConfigReader final : public FieldVisitor {
 public:
  /// REQUIRES: the document outlives the reader.
  explicit ConfigReader(const Document& document, Unread unread = Unread::Refused)
      : document_(document), unread_(unread) {}

  /// Sets the fields that the document names below `section` ("" for the top level); the others, and those whose
  /// value is refused, keep their values.
  template <class Options>
  void read(std::string_view section, Options& options) {
    enter(section);
    options.fields(*this);
    leave();
  }

  /// The keys of this section cannot be checked (its `name` was wrong, say): they count as known. True if there
  /// are any.
  bool skip(std::string_view section);

  /// Problems with the value of `key` that only the caller can see, a line each; without the key in front.
  void refuse(std::string_view key, const std::string& what);

  /// A key that nothing reads, and why. A problem (or ignored) where the document sets it: to anything, if no pass
  /// asked for it, or else to another value than the options had.
  void unread(std::string_view key, const std::string& why);

  /// Settings that were ignored, although fields may have taken their values.
  const std::vector<PassedOver>& passed_over() const { return passed_over_; }

  /// True if the document sets `by` in a later layer than `key`: over a recipe's shape, `model.path=...` on the
  /// command line wins. Such a key counts as known.
  bool outranked(std::string_view key, std::string_view by);

  /// True if the document sets the key.
  bool given(std::string_view key) const { return document_.find(key) != nullptr; }

  /// All problems at once: the document's, wrong values, unknown keys with the nearest known one.
  Status finish();

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
  void leave();
  const Setting* visit(std::string_view name);
  void expected(const Setting& setting, const std::string& what);
  void report(const std::string& problem);
  template <class T>
  void set(std::string_view name, T& value, T parsed);
  std::string unknown(const Setting& setting) const;
  std::string meant(const std::string& key) const;
  std::string nearest(const std::string& key) const;

  const Document& document_;
  Unread unread_;
  std::vector<std::string> prefixes_{""};  ///< each ends in '.', or is empty
  std::set<std::string> fields_{};         ///< every key that a pass asked for
  std::set<std::string> sections_{};       ///< every section that a pass entered
  std::set<std::string> used_{};           ///< keys of settings that a field took
  std::set<std::string> changed_{};        ///< fields that a setting gave another value
  std::set<std::string> skipped_{};
  std::vector<std::string> problems_{};
  std::vector<PassedOver> passed_over_{};
};

}  // namespace carnot
