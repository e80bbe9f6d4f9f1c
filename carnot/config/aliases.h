// config/aliases.h -- the keys of verl that a recipe may use, and what Carnot calls them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace carnot {

struct Alias {
  std::string_view theirs;             ///< dotted key
  std::vector<std::string_view> ours;  ///< it sets all of these; empty: no counterpart, and `advice` says what to do
  std::vector<std::pair<std::string_view, std::string_view>> words{};  ///< their word for a value, ours
  std::string_view advice{};
};

/// The table, in the order of docs/migration.
std::span<const Alias> verl_aliases();

}  // namespace carnot
