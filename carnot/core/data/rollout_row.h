// data/rollout_row.h -- one line of a rollout file as plain values, checked in isolation. Used by rollout_file.cpp
// only.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/data/columns.h"
#include "carnot/core/data/credit_table.h"
#include "carnot/core/data/tree.h"

namespace carnot {

/// Since version 2, steps count from 1 and seeds are strings.
inline constexpr int kRolloutRowVersion = 2;

/// A trajectory as its row describes it: turns in reading order, nothing shared yet.
struct RolloutRow {
  int line = 0;
  Group group{};                       ///< without `trees`
  std::optional<std::int64_t> tree{};  ///< number within the group
  std::optional<std::string> parent{};
  Leaf leaf{};                ///< without `turn` and `parent`
  std::vector<Turn> turns{};  ///< without `parent`
  /// Per turn and token; no entry for columns that are not in the row.
  std::map<Column, std::vector<std::vector<double>>> columns{};
  bool has_credit = false;
  Credit credit{};  ///< initial values if the row has none
};

/// Reads one line. Appends problems to `problems`, each beginning with `where`; the row is then unusable.
std::optional<RolloutRow> parse_rollout_row(std::string_view line, const std::string& where,
                                            std::vector<std::string>& problems);

}  // namespace carnot
