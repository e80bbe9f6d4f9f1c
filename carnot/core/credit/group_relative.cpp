#include "carnot/core/credit/group_relative.h"

namespace carnot {
namespace {

using StandardOf = std::function<Standard(std::span<const double>)>;

/// Visits every turn with its reward and what that is compared with.
void compare(std::span<const Trajectory> trajectories, const CreditTable& table, Statistics statistics,
             const StandardOf& standard_of, const std::function<void(const CreditRow&, const Standard&)>& visit) {
  for (const auto& members : members_by_group(trajectories)) {
    if (statistics != Statistics::Trajectories) {
      const std::vector<CreditRow> rows = rows_of(trajectories, table, members);
      const Standard standard = standard_of(counted_rewards(rows, statistics));
      for (const CreditRow& row : rows) visit(row, standard);
      continue;
    }
    const std::vector<double> rewards = rewards_of(table, members);
    const Standard standard = standard_of(rewards);
    for (std::size_t i = 0; i < members.size(); ++i)
      for (int k = 0; k < trajectories[members[i]].num_turns(); ++k)
        visit({.trajectory = members[i], .turn = k, .reward = rewards[i]}, standard);
  }
}

Standard against_the_others(std::span<const double> rewards, Singleton singleton) {
  Standard standard = standard_of(rewards, {.divide_by_std = false, .singleton = singleton});
  const double n = static_cast<double>(rewards.size());
  if (rewards.size() > 1) standard.divisor = (n - 1) / n;
  return standard;
}

}  // namespace

void statistics_field(FieldVisitor& visit, Statistics& statistics) {
  enum_field(visit, "statistics", statistics, {"trajectories", "rows", "first_rows"},
             "what counts once in a group's statistics: trajectories, every turn, or each one's first turn");
}

CreditRule against_group(std::string name, Statistics statistics, StandardOf standard) {
  const auto apply = [statistics, standard](std::span<const Trajectory> trajectories, CreditTable& table) {
    compare(trajectories, table, statistics, standard, [&](const CreditRow& row, const Standard& standard_of_group) {
      add_to_turn(table[row.trajectory].advantage, trajectories[row.trajectory], row.turn,
                  standard_of_group.of(row.reward));
    });
  };
  const auto read = [statistics, standard](std::span<const Trajectory> trajectories, const CreditTable& table,
                                           RuleReadings& readings) {
    compare(trajectories, table, statistics, standard, [&](const CreditRow& row, const Standard& standard_of_group) {
      readings.set_turn("reward", row.trajectory, row.turn, row.reward);
      readings.set_turn("group mean", row.trajectory, row.turn, standard_of_group.centre);
      readings.set_turn("divisor", row.trajectory, row.turn, standard_of_group.divisor);
    });
  };
  const bool needs_siblings = statistics == Statistics::Trajectories && standard(std::vector{1.0}).of(1) == 0;
  return {.name = std::move(name), .apply = apply, .read = read, .needs_siblings = needs_siblings};
}

std::vector<CreditRow> rows_of(std::span<const Trajectory> trajectories, const CreditTable& table,
                               std::span<const int> members) {
  std::vector<CreditRow> rows;
  for (int member : members) {
    const Trajectory& one = trajectories[member];
    const double shaping = table[member].total_reward() - one.penalised_score();
    for (int k = 0; k < one.num_turns(); ++k)
      if (one.turn(k).num_sampled() > 0)
        rows.push_back({.trajectory = member, .turn = k, .reward = one.leaf().score + one.turn(k).penalty + shaping});
  }
  return rows;
}

std::vector<double> counted_rewards(std::span<const CreditRow> rows, Statistics statistics) {
  std::vector<double> rewards;
  for (std::size_t r = 0; r < rows.size(); ++r)
    if (statistics == Statistics::Rows || r == 0 || rows[r].trajectory != rows[r - 1].trajectory)
      rewards.push_back(rows[r].reward);
  return rewards;
}

void LeaveOneOutOptions::fields(FieldVisitor& visit) {
  singleton_field(visit, singleton);
  statistics_field(visit, statistics);
}

CreditRule leave_one_out(const LeaveOneOutOptions& options) {
  return against_group("leave_one_out", options.statistics, [singleton = options.singleton](auto rewards) {
    return against_the_others(rewards, singleton);
  });
}

void GroupRelativeOptions::fields(FieldVisitor& visit) {
  normalisation.fields(visit);
  statistics_field(visit, statistics);
}

CreditRule group_relative(const GroupRelativeOptions& options) {
  return against_group("group_relative", options.statistics, [normalisation = options.normalisation](auto rewards) {
    return standard_of(rewards, normalisation);
  });
}

}  // namespace carnot
