// config/aliases.h -- the keys of verl that a recipe may use, and what Carnot calls them; short and foreign names that
// are answered with ours. docs/coming_from_verl.md prints the first table, and a test compares the two.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace carnot {

struct Alias {
  std::string_view theirs;               ///< dotted key; ending in ".*": every key below it
  std::vector<std::string_view> ours{};  ///< it sets all of these; empty: no counterpart
  /// Their word for a value, ours; "": what they ask for holds here anyway, and nothing is set.
  std::vector<std::pair<std::string_view, std::string_view>> words{};
  std::string_view advice{};   ///< where there is no counterpart: what to do instead; any other word is refused
  std::string_view note{};     ///< where there is no counterpart: why it has no meaning; it is accepted, and logged
  std::string_view divides{};  ///< ours is this key's value divided by theirs
};

/// The table, in the order of the docs.
std::span<const Alias> verl_aliases();

/// The row for a key; null if there is none.
const Alias* find_alias(std::span<const Alias> aliases, std::string_view key);

/// The key that people mean by a word that is not ours ("lr", "num_generations"); empty if unknown.
std::string_view familiar_key(std::string_view word);

}  // namespace carnot
