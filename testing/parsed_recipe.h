// testing/parsed_recipe.h -- a recipe's text, parsed.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "carnot/core/config/document.h"

namespace carnot::testing {

inline Document parsed(std::string_view text, const RecipeSource& source = {}) {
  auto document = Document::parse(text, "r.yaml", source);
  EXPECT_TRUE(document.ok()) << (document.ok() ? "" : document.error().message);
  return document.ok() ? *document : Document();
}

/// As it is shown, or "not set".
inline std::string value_of(const Document& document, std::string_view key) {
  const Setting* setting = document.find(key);
  return setting == nullptr ? "not set" : setting->value.shown();
}

}  // namespace carnot::testing
