// config/document.h -- a recipe as flat settings: dotted key, value, and the place where it was written.
//
// A recipe is a YAML file of sections and values, optionally on top of another one (`extends: base.yaml`, relative
// to the file), with `key=value` overrides from the command line on top. Keys of verl are understood
// (config/aliases.h). A section that has a `name` may be written as that name alone: `method: grpo`. A relative path to
// what a run reads is one from the working directory, or else from the recipe's folder (config/recipe_paths.h).
//
// What YAML allows and a recipe has no use for is refused with its place: aliases and anchors, merge keys, tags,
// tabs, several documents, lists of lists, one key twice. Knows no option: config/reader.h matches keys and fields.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/config/aliases.h"

namespace carnot {

/// A value as written, before anything knows its type.
struct SettingValue {
  enum class Kind { Null, Scalar, List };
  struct Scalar {
    std::string text{};
    bool quoted = false;  ///< then it is text, whatever it looks like
  };
  Kind kind = Kind::Null;
  std::vector<Scalar> items{};  ///< one for a scalar

  /// As it would be written in YAML, shortened: for messages.
  std::string shown() const;
};

/// The same value: texts compared as numbers where both are numbers.
bool same_value(const SettingValue& a, const SettingValue& b);

struct Setting {
  std::string key{};      ///< Carnot's, dotted
  std::string written{};  ///< the key as the user wrote it
  std::string place{};    ///< "recipe.yaml:3:5" or "command line"
  SettingValue value{};
  int layer = 0;                      ///< later layers win: base recipes, the recipe, overrides
  AliasRank rank = AliasRank::Plain;  ///< within a layer
  std::string_view environment{};     ///< the one that has this key, where an alias knows it
  std::string_view note{};            ///< said instead where the recipe has another environment; empty: refused

  /// Where, which key, what was found: the beginning of every message about this setting.
  std::string shown() const { return place + ": " + written; }
};

struct RecipeSource {
  std::vector<std::string> overrides{};  ///< `key=value`, the value in YAML; an empty one is the empty text
  std::span<const Alias> aliases = all_aliases();
};

class Document {
 public:
  /// Reads the recipe and those it extends. Fails if a file cannot be read or is no YAML; all other problems
  /// are kept in problems(), to be reported together with those that the reader finds.
  static Result<Document> load(const std::filesystem::path& path, const RecipeSource& source = {});

  /// The same for a string; `name` is for messages, and its folder is where `extends` looks.
  static Result<Document> parse(std::string_view text, const std::string& name, const RecipeSource& source = {});

  /// The setting in force; for "section.name" also the section written as that name. Null if there is none.
  const Setting* find(std::string_view key) const;

  /// By key; settings that a later layer replaced are left out.
  const std::map<std::string, Setting>& settings() const { return settings_; }

  /// True if the command line sets it.
  bool is_override(const Setting& setting) const { return setting.layer == override_layer_; }

  /// Takes a setting out, as if it had not been written.
  void leave_out(const std::string& key) { settings_.erase(key); }

  /// The text of a setting that a recipe holds becomes `now` where it is `before`; overrides stay.
  void replace(const std::string& key, std::string_view before, std::string_view now);

  /// Settings in the recipe's own file: 0 where it is empty.
  int num_written() const { return num_written_; }

  /// Keys given twice with different values, unreadable overrides, foreign keys that ask for what there is not.
  const std::vector<std::string>& problems() const { return problems_; }

  /// Foreign keys that are accepted and mean nothing here, each with the reason.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  friend class DocumentBuilder;

  std::map<std::string, Setting> settings_{};
  std::vector<std::string> problems_{};
  std::vector<std::string> notes_{};
  int num_written_ = 0;
  int override_layer_ = 0;
};

}  // namespace carnot
