// config/aliases.h -- the keys of verl and TRL that a recipe may use, and what Carnot calls them; other names that are
// answered with ours. docs/coming_from_verl.md and docs/coming_from_trl.md print the tables, and a test compares them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace carnot {

/// Which of several keys of one recipe wins where they set the same key of ours to different values.
enum class AliasRank {
  Default,  ///< any other key wins: TRL's `epsilon` is the upper bound only where there is no `epsilon_high`
  Plain,    ///< none: two of these are a contradiction
  Switch    ///< a switch that is off wins, with a note: `use_kl_loss: false` over `kl_loss_coef: 0.001`
};

struct Alias {
  std::string_view theirs;               ///< dotted key; ending in "*": every key that begins so
  std::vector<std::string_view> ours{};  ///< it sets all of these; empty: no counterpart
  /// Their word for a value, ours; "": what they ask for holds here anyway, and nothing is set.
  std::vector<std::pair<std::string_view, std::string_view>> words{};
  std::string_view advice{};   ///< where there is no counterpart: what to do instead; any other word is refused
  std::string_view note{};     ///< where there is no counterpart: why it has no meaning; it is accepted, and logged
  std::string_view divides{};  ///< ours is this key's value divided by theirs
  std::string_view appends{};  ///< theirs is appended to our key's value, after this text
  AliasRank rank = AliasRank::Plain;
  bool former = false;             ///< a key that Carnot itself had: it is taken with a note
  std::string_view environment{};  ///< the environment that has our key; with others a note applies, or it is refused
};

/// The tables, in the order of the docs: a line of verl_keys.txt and trl_keys.txt each, which has their key, then what
/// there is of it, in columns: `= ours, ours`; `theirs -> ours` for a word; `ignored: note`; `refused: advice`; `in
/// environment`; `divides key`; `after text`; `weakest` or `switch` for its rank. TRL's has the names of GRPOConfig,
/// TrainingArguments and ModelConfig.
std::span<const Alias> verl_aliases();
std::span<const Alias> trl_aliases();

/// Carnot's own keys of the release before this one.
std::span<const Alias> former_keys();

/// All three.
std::span<const Alias> all_aliases();

/// The row for a key; null if there is none.
const Alias* find_alias(std::span<const Alias> aliases, std::string_view key);

/// The key that people mean by a word that is not ours ("lr", "num_generations"); empty if unknown.
std::string_view familiar_key(std::string_view word);

}  // namespace carnot
