// method/options.h -- what a method's file defines: its keys, and what it adds to a composition.
//
// The file exports one function, which creates its MethodOptions; the table in methods.cpp names it.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/fields.h"
#include "carnot/core/base/unread_keys.h"
#include "carnot/core/credit/reward.h"

namespace carnot {

struct Method;

/// Visits the shaping under `reward.`.
void reward_section(FieldVisitor& visit, RewardOptions& reward);

/// `preset`: one word that sets the defaults of a method, the same words in every method. A preset sets the defaults of
/// the options read after it and of what the method asks of the objective; explicit keys win. The first in a method's
/// list is its default.
enum class Preset {
  Carnot,    ///< the setting measured here, if it is none of the others
  Paper,     ///< the method as its paper describes it
  Code,      ///< a published program as it runs
  Readme,    ///< the authors' documented example, if its numbers differ
  Reported,  ///< the runs whose scores the authors report, if their numbers differ
};

std::string_view name_of(Preset preset);

/// One preset of a method, and a line on what it sets. REQUIRES: the string is valid for the program's lifetime.
struct PresetEntry {
  Preset preset;
  std::string_view sets;
};

/// Visits `preset`, one of `all`, and lets `apply` set its defaults if the visitor changed it.
template <class Apply>
void preset_field(FieldVisitor& visit, std::span<const PresetEntry> all, Preset& preset, Apply apply) {
  std::vector<std::string> words;
  std::string help;
  for (const PresetEntry& entry : all) {
    words.emplace_back(name_of(entry.preset));
    help += (help.empty() ? "" : "; ") + words.back() + ": " + std::string(entry.sets);
  }
  std::string word(name_of(preset));
  visit.field("preset", word, help, one_of(words));
  const auto chosen =
      std::find_if(all.begin(), all.end(), [&](const PresetEntry& entry) { return name_of(entry.preset) == word; });
  if (chosen == all.end() || chosen->preset == preset) return;
  preset = chosen->preset;
  apply();
}

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
