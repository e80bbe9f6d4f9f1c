// method/options.h -- what a method's file defines: its keys, and what it adds to a composition.
//
// The file exports one function, which creates its MethodOptions; the table in methods.cpp names it.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

#include "carnot/core/base/fields.h"
#include "carnot/core/base/unread_keys.h"
#include "carnot/core/credit/reward.h"
#include "carnot/core/method/preset.h"

namespace carnot {

struct Method;

/// Visits the shaping under `reward.`.
void reward_section(FieldVisitor& visit, RewardOptions& reward);

/// Passes a method's keys to a visitor, and collects those that nothing reads, given the others.
class MethodKeys {
 public:
  /// `is_base`: no other method precedes this one.
  MethodKeys(FieldVisitor& visitor, bool is_base) : visit(visitor), is_base(is_base) {}

  FieldVisitor& visit;  ///< for single fields
  const bool is_base;   ///< if false, the keys of a base that the method would add are not listed

  /// `preset`, one of `all`; `apply` sets its defaults.
  template <class Apply>
  void preset(std::span<const PresetEntry> all, Preset& preset, Apply apply) {
    presets_ = all;
    preset_field(visit, all, preset, apply);
  }
  /// For a method with one preset.
  void preset(std::span<const PresetEntry> only);

  /// The keys of one of the method's parts, among the method's own or under `name.`.
  template <class Options>
  void add(Options& options) {
    options.fields(visit);
    if constexpr (requires { options.unread_keys(); }) unread_.add(options.unread_keys());
  }
  template <class Options>
  void add(std::string_view name, Options& options, std::string_view help) {
    section(visit, name, options, help);
    if constexpr (requires { options.unread_keys(); }) unread_.add(options.unread_keys(), name);
  }

  /// The shaping that every base offers, under `reward.`.
  void reward(RewardOptions& reward, RewardsRead read);

  /// `compat.`: deviations of published code, which `show` visits.
  template <class Show>
  void compat(Show show) {
    visit.begin_section("compat", "single quirks of published code");
    show(visit);
    visit.end_section();
  }

  /// Marks `keys` as unread.
  void unread(std::initializer_list<std::string_view> keys, std::string_view why) { unread_.add(keys, why); }
  template <class Options>
  void unread_all(const Options& options, std::string_view name, std::string_view why) {
    unread_.add_all(options, name, why);
  }

  const UnreadKeys& unread() const { return unread_; }
  std::span<const PresetEntry> presets() const { return presets_; }

 private:
  UnreadKeys unread_{};
  std::span<const PresetEntry> presets_{};
};

/// The options of one method.
class MethodOptions {
 public:
  virtual ~MethodOptions() = default;
  /// Lists the keys, once for all purposes, and then the keys that nothing reads.
  virtual void keys(MethodKeys& keys) = 0;
  /// Adds the method to the preceding part of `a + b + c`. The first base sets ratio, clip, reduction and KL; an add-on
  /// changes only its own slots.
  virtual void compose(Method& method) const = 0;
};

}  // namespace carnot
