// method/preset.h -- `preset: paper` or `preset: code`, the same word in every method.
//
// Paper is the default and means the method as its paper states it; Code, where the two differ, means the authors'
// program as it runs. A preset sets the defaults of the options read after it; explicit keys win.
#pragma once

#include "carnot/base/fields.h"

namespace carnot {

enum class Preset { Paper, Code };

/// Where paper and code agree: the only word is `paper`.
inline void only_paper_preset(FieldVisitor& visit) {
  std::string word = "paper";
  visit.field("preset", word, "paper and published code agree", one_of({"paper"}));
}

/// Visits `preset` and, where the visitor changed it, lets `apply` set the defaults that belong to it.
template <class Apply>
void preset_field(FieldVisitor& visit, Preset& preset, Apply apply) {
  const Preset before = preset;
  enum_field(visit, "preset", preset, {"paper", "code"}, "the paper's form, or the published program's");
  if (preset != before) apply();
}

}  // namespace carnot
