#include "carnot/credit/group_relative.h"

#include "carnot/credit/members.h"

namespace carnot {
namespace {

void credit_trajectories(std::span<const Trajectory> trajectories, CreditTable& table, const Normalisation& options) {
  for (const auto& members : members_by_group(trajectories)) {
    const std::vector<double> advantage = normalised(rewards_of(table, members), options);
    for (std::size_t i = 0; i < members.size(); ++i) {
      const auto member = static_cast<std::size_t>(members[i]);
      add_to_all_turns(table[member].advantage, trajectories[member], advantage[i]);
    }
  }
}

void credit_rows(std::span<const Trajectory> trajectories, CreditTable& table, const GroupRelativeOptions& options) {
  for (const auto& members : members_by_group(trajectories)) {
    const std::vector<CreditRow> rows = rows_of(trajectories, table, members);
    const Standard standard = standard_of(counted_rewards(rows, options.statistics), options.normalisation);
    for (const CreditRow& row : rows) {
      const auto member = static_cast<std::size_t>(row.trajectory);
      add_to_turn(table[member].advantage, trajectories[member], row.turn, standard.of(row.reward));
    }
  }
}

}  // namespace

void GroupRelativeOptions::fields(FieldVisitor& visit) {
  normalisation.fields(visit);
  enum_field(visit, "statistics", statistics, {"trajectories", "rows", "first_rows"},
             "what counts once in a group's mean and deviation: trajectories, every turn, or each one's first turn");
}

CreditRule group_relative(const GroupRelativeOptions& options) {
  return {.name = "group_relative", .apply = [options](std::span<const Trajectory> trajectories, CreditTable& table) {
            if (options.statistics == Statistics::Trajectories)
              credit_trajectories(trajectories, table, options.normalisation);
            else
              credit_rows(trajectories, table, options);
          }};
}

std::vector<CreditRow> rows_of(std::span<const Trajectory> trajectories, const CreditTable& table,
                               std::span<const int> members) {
  std::vector<CreditRow> rows;
  for (int member : members) {
    const Trajectory& one = trajectories[static_cast<std::size_t>(member)];
    const double shaping = table[static_cast<std::size_t>(member)].total_reward() - one.penalised_score();
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

}  // namespace carnot
