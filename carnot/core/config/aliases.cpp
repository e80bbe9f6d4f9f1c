#include "carnot/core/config/aliases.h"

#include <algorithm>

#include "carnot/core/base/check.h"
#include "carnot/core/base/file.h"

namespace carnot {

extern const std::string_view kVerlKeys, kTrlKeys, kFormerKeys, kFamiliarKeys;  // verl_keys.txt and so on

namespace {

std::vector<std::string_view> parts_of(std::string_view text, std::string_view between) {
  std::vector<std::string_view> parts;
  for (std::size_t end = text.find(between); end != text.npos; end = text.find(between)) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + between.size());
  }
  parts.push_back(text);
  return parts;
}

/// Takes `word` off the front of `text`, if it is there.
bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

/// One column of a row after the first, as aliases.h describes them.
void read_column(Alias& alias, std::string_view column) {
  if (take(column, "= ")) {
    alias.ours = parts_of(column, ", ");
  } else if (take(column, "ignored: ")) {
    alias.note = column;
  } else if (take(column, "refused: ")) {
    alias.advice = column;
  } else if (take(column, "in ")) {
    alias.environment = column;
  } else if (take(column, "divides ")) {
    alias.divides = column;
  } else if (take(column, "after ")) {
    alias.appends = column;
  } else if (column == "weakest" || column == "switch") {
    alias.rank = column == "switch" ? AliasRank::Switch : AliasRank::Default;
  } else {
    const std::size_t arrow = column.find(" ->");
    CARNOT_CHECK(arrow != column.npos, std::string(column));
    const std::string_view ours = column.substr(arrow + 3);
    alias.words.emplace_back(column.substr(0, arrow), ours.empty() ? ours : ours.substr(1));
  }
}

std::vector<Alias> read_table(std::string_view text) {
  std::vector<Alias> table;
  for (const std::string_view line : split_lines(text)) {
    if (line.empty() || line.starts_with('#')) continue;
    const auto columns = parts_of(line, " | ");
    Alias& alias = table.emplace_back(Alias{.theirs = columns.front()});
    for (std::size_t i = 1; i < columns.size(); ++i) read_column(alias, columns[i]);
  }
  return table;
}

}  // namespace

std::span<const Alias> verl_aliases() {
  static const std::vector<Alias> kTable = read_table(kVerlKeys);
  return kTable;
}

std::span<const Alias> trl_aliases() {
  static const std::vector<Alias> kTable = read_table(kTrlKeys);
  return kTable;
}

std::span<const Alias> former_keys() {
  static const std::vector<Alias> kTable = [] {
    auto table = read_table(kFormerKeys);
    for (Alias& alias : table) alias.former = true;
    return table;
  }();
  return kTable;
}

std::span<const Alias> all_aliases() {
  static const std::vector<Alias> kAll = [] {
    std::vector<Alias> all(verl_aliases().begin(), verl_aliases().end());
    all.insert(all.end(), trl_aliases().begin(), trl_aliases().end());
    all.insert(all.end(), former_keys().begin(), former_keys().end());
    return all;
  }();
  return kAll;
}

const Alias* find_alias(std::span<const Alias> aliases, std::string_view key) {
  const auto stands_for = [key](const Alias& alias) {
    const bool is_prefix = alias.theirs.ends_with("*");
    return is_prefix ? key.starts_with(alias.theirs.substr(0, alias.theirs.size() - 1)) : key == alias.theirs;
  };
  const auto found = std::find_if(aliases.begin(), aliases.end(), stands_for);
  return found == aliases.end() ? nullptr : &*found;
}

std::string_view familiar_key(std::string_view word) {
  static const std::vector<Alias> kTable = read_table(kFamiliarKeys);
  const Alias* known = find_alias(kTable, word);
  if (known == nullptr) known = find_alias(trl_aliases(), word);
  return known == nullptr || known->ours.empty() ? std::string_view() : known->ours.front();
}

}  // namespace carnot
