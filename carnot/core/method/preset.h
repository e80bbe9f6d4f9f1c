// method/preset.h -- `preset`: one word that sets the defaults of a method, the same words in every method.
//
// Paper is the method as its paper describes it; Code is a published program as it runs; Readme is the authors'
// documented example, if its numbers differ; Carnot is the setting measured here, if it is none of these. The first
// in a method's list is its default. A preset sets the defaults of the options read after it and of what the method
// asks of the objective; explicit keys win.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/fields.h"

namespace carnot {

enum class Preset { Carnot, Paper, Code, Readme };

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

/// For a method with one preset.
inline void preset_field(FieldVisitor& visit, std::span<const PresetEntry> only) {
  Preset preset = only.front().preset;
  preset_field(visit, only, preset, [] {});
}

}  // namespace carnot
