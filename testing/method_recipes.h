// testing/method_recipes.h -- methods by name and settings.
#pragma once

#include <gmock/gmock.h>

#include <map>
#include <string>
#include <vector>

#include "carnot/core/method/method.h"
#include "testing/field_settings.h"

namespace carnot::testing {

using MethodSettings = std::map<std::string, std::string>;

inline MethodRecipe recipe_of(const std::string& composition, const MethodSettings& settings = {}) {
  MethodRecipe recipe = parse_method(composition).value();
  FieldSettings visitor(settings);
  recipe.fields(visitor);
  EXPECT_THAT(visitor.unused(), ::testing::IsEmpty());
  return recipe;
}

inline Method method_of(const std::string& composition, const MethodSettings& settings = {}) {
  return build_method(recipe_of(composition, settings));
}

/// The names of its credit rules, in order.
inline std::vector<std::string> rules_of(const Method& method) {
  std::vector<std::string> names;
  for (const CreditRule& rule : method.credit) names.push_back(rule.name);
  return names;
}

}  // namespace carnot::testing
