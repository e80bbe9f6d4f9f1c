// data/columns.h -- signals: one measured number per token, stored with the tree, typed by an enum.
//
// A column holds, per turn, one value per token of that turn; NaN if nothing was measured (tokens the policy did
// not sample). Signals belong to turns, so trajectories that share a turn share its signals.
// Credit (advantage, weight, ...) belongs to trajectories and is in data/credit_table.h.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace carnot {

enum class Column : std::uint8_t {
  LogProbRollout,    ///< by the engine, while sampling
  EntropyRollout,    ///< full softmax, by the engine, nats
  LogProbOld,        ///< by the training code, before the first update on these data
  EntropyOld,        ///< full softmax of the old policy, nats
  LogProbCurrent,    ///< under the weights that the token's last update started from
  LogProbReference,  ///< under the frozen reference
  EnergyReference,   ///< -logsumexp of the reference's raw logits
  EntropyReference,  ///< full softmax of the reference, nats
  Value,             ///< the critic's
  Reward,            ///< dense reward on this token
  AdvantageOracle,   ///< of the token's turn, measured by continuations: V after it minus V before it
};
inline constexpr int kNumColumns = 11;

/// The fields of the rollout row (docs/trajectory_format.md), in the enum's order.
inline constexpr std::array<std::string_view, kNumColumns> kColumnFields = {
    "logp_rollout", "entropy", "logp_old", "entropy_old",     "logp", "logp_ref", "energy_ref",
    "entropy_ref",  "value",   "reward",   "advantage_oracle"};
inline std::string_view name_of(Column column) { return kColumnFields[static_cast<std::size_t>(column)]; }

/// The columns of one tree: values(column)[turn][offset in the turn].
class Columns {
 public:
  bool has(Column column) const { return !at(column).empty(); }

  /// Turns that the column holds, starting with turn 0.
  int num_turns(Column column) const { return static_cast<int>(at(column).size()); }

  /// REQUIRES: turn < num_turns(column).
  const std::vector<double>& turn(Column column, int turn) const;

  /// Extends the column to `turn` if necessary, and returns that turn's `size` values, NaN unless set before.
  std::vector<double>& edit(Column column, int turn, int size);

  /// Removes all values of the column.
  void clear(Column column) { values_[static_cast<std::size_t>(column)].clear(); }

  friend void visit_members(Columns& columns, const auto& visit) { visit(columns.values_); }
  friend void visit_members(const Columns& columns, const auto& visit) { visit(columns.values_); }

 private:
  const std::vector<std::vector<double>>& at(Column column) const { return values_[static_cast<std::size_t>(column)]; }

  std::array<std::vector<std::vector<double>>, kNumColumns> values_{};
};

}  // namespace carnot
