#include "carnot/core/credit/tree_relative.h"

#include <functional>
#include <map>

namespace carnot {
namespace {

using Members = std::vector<std::vector<int>>;

/// values[i] of trajectory i, normalised within its set.
std::vector<double> against(const Members& sets, std::span<const double> values, const Normalisation& normalisation) {
  std::vector<double> out(values.size(), 0.0);
  for (const auto& members : sets) {
    std::vector<double> of_set;
    for (int i : members) of_set.push_back(values[i]);
    const Standard standard = standard_of(of_set, normalisation);
    for (int i : members) out[i] = standard.of(values[i]);
  }
  return out;
}

std::vector<double> nested(const Members& trees, std::vector<double> in_group, Normalisation normalisation) {
  normalisation.singleton = Singleton::Raw;
  return against(trees, in_group, normalisation);
}

/// A leaf's reward, compared with its group and with its tree.
struct LeafComparisons {
  std::vector<double> reward{}, in_group{}, in_tree{};
};

LeafComparisons compare_leaves(std::span<const Trajectory> trajectories, const CreditTable& table,
                               const TreeRelativeOptions& options) {
  LeafComparisons out;
  for (const Credit& credit : table) out.reward.push_back(credit.total_reward());
  const Members trees = members_by_tree(trajectories);
  out.in_group = against(members_by_group(trajectories), out.reward, options.normalisation);
  out.in_tree = options.estimator == TreeEstimator::Nested ? nested(trees, out.in_group, options.normalisation)
                                                           : against(trees, out.reward, options.normalisation);
  return out;
}

void credit_leaves(std::span<const Trajectory> trajectories, CreditTable& table, const TreeRelativeOptions& options) {
  const LeafComparisons leaves = compare_leaves(trajectories, table, options);
  for (std::size_t i = 0; i < trajectories.size(); ++i) {
    if (!trajectories[i].leaf().is_included()) continue;
    const double inter = options.estimator == TreeEstimator::GroupAndTree ? leaves.in_group[i] : 0;
    add_to_all_turns(table[i].advantage, trajectories[i], inter + leaves.in_tree[i]);
  }
}

void read_leaves(std::span<const Trajectory> trajectories, const CreditTable& table, const TreeRelativeOptions& options,
                 RuleReadings& readings) {
  const LeafComparisons leaves = compare_leaves(trajectories, table, options);
  for (std::size_t i = 0; i < trajectories.size(); ++i) {
    if (!trajectories[i].leaf().is_included()) continue;
    readings.set_all("reward", i, leaves.reward[i]);
    readings.set_all("z in the group", i, leaves.in_group[i]);
    readings.set_all("z in the tree", i, leaves.in_tree[i]);
  }
}

void credit_tokens(const Members& sets, std::span<const Trajectory> trajectories, CreditTable& table,
                   const Normalisation& normalisation) {
  for (const auto& members : sets) {
    std::vector<double> pool;
    for (int i : members) {
      const auto& reward = table[i].reward;
      const std::vector<bool> inside = in_response(trajectories[i]);
      for (std::size_t t = 0; t < reward.size(); ++t)
        if (inside[t]) pool.push_back(reward[t]);
    }
    const Standard standard = standard_of(pool, normalisation);
    for (int i : members) {
      Credit& credit = table[i];
      const std::vector<bool> sampled = trajectories[i].sampled();
      for (std::size_t t = 0; t < sampled.size(); ++t)
        if (sampled[t]) credit.advantage[t] += standard.of(credit.reward[t]);
    }
  }
}

/// One occurrence of a shared turn in a trajectory.
struct Passage {
  std::size_t trajectory = 0;
  int k = 0;
};

/// Visits the passages of each turn that several trajectories contain.
void visit_shared(std::span<const Trajectory> trajectories,
                  const std::function<void(std::span<const Passage> passages)>& visit) {
  for (const auto& members : members_by_tree(trajectories)) {
    std::map<int, std::vector<Passage>> passages;
    for (int i : members) {
      const Trajectory& one = trajectories[i];
      for (int k = 0; k < one.num_turns(); ++k)
        passages[one.turns[k]].push_back({.trajectory = static_cast<std::size_t>(i), .k = k});
    }
    for (const auto& [turn, all] : passages)
      if (all.size() > 1) visit(all);
  }
}

void share(std::span<const Passage> passages, std::span<const Trajectory> trajectories, CreditTable& table) {
  const double n = static_cast<double>(passages.size());
  const auto part = [&](const Passage& passage) {
    return sampled_part(table[passage.trajectory].advantage, trajectories[passage.trajectory], passage.k);
  };
  for (std::size_t t = 0; t < part(passages.front()).size(); ++t) {
    double sum = 0;
    for (const Passage& passage : passages) sum += part(passage)[t];
    for (const Passage& passage : passages) part(passage)[t] = sum / n;
  }
}

}  // namespace

void TreeRelativeOptions::fields(FieldVisitor& visit) {
  enum_field(visit, "estimator", estimator, {"group_and_tree", "tree", "nested", "per_token"},
             "what a leaf is compared with");
  normalisation.fields(visit);
}

CreditRule tree_relative(const TreeRelativeOptions& options) {
  const auto apply = [options](std::span<const Trajectory> trajectories, CreditTable& table) {
    if (options.estimator != TreeEstimator::PerToken) return credit_leaves(trajectories, table, options);
    credit_tokens(members_by_group(trajectories), trajectories, table, options.normalisation);
    credit_tokens(members_by_tree(trajectories), trajectories, table, options.normalisation);
  };
  const auto read = [options](std::span<const Trajectory> trajectories, const CreditTable& table,
                              RuleReadings& readings) {
    if (options.estimator != TreeEstimator::PerToken) read_leaves(trajectories, table, options, readings);
  };
  return {.name = "tree_relative", .apply = apply, .read = read};
}

CreditRule shared_prefix() {
  const auto apply = [](std::span<const Trajectory> trajectories, CreditTable& table) {
    visit_shared(trajectories, [&](std::span<const Passage> passages) { share(passages, trajectories, table); });
  };
  const auto read = [](std::span<const Trajectory> trajectories, const CreditTable&, RuleReadings& readings) {
    visit_shared(trajectories, [&](std::span<const Passage> passages) {
      for (const Passage& passage : passages)
        readings.set_turn("trajectories with this turn", passage.trajectory, passage.k,
                          static_cast<double>(passages.size()));
    });
  };
  return {.name = "shared_prefix", .apply = apply, .read = read, .kind = RuleKind::Modulator};
}

}  // namespace carnot
