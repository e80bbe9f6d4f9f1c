#include "carnot/core/rollout/measured_advantage.h"

#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "carnot/core/base/random.h"
#include "carnot/core/base/statistics.h"

namespace carnot {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// A turn of a group, by tree and turn.
using TurnPlace = std::pair<int, int>;

/// The state before each turn of the leaves that count, by the turn before it; that of the prompt has the turn -1 and
/// is shared by the group's trees.
std::map<TurnPlace, GivenStart> states_of(const Group& group) {
  std::map<TurnPlace, GivenStart> states;
  for (const Trajectory& one : trajectories(std::span(&group, 1))) {
    if (!one.leaf().is_included()) continue;
    for (int k = 0; k < one.num_turns(); ++k) {
      const TurnPlace before = k == 0 ? TurnPlace{-1, -1} : TurnPlace{one.tree_index, one.turns[k - 1]};
      if (!states.contains(before) && one.turn(k).num_sampled() > 0) states[before] = start_of(one, k);
    }
  }
  return states;
}

double mean_score(const Continuations& continuations) {
  std::vector<double> scores;
  for (const std::optional<double>& score : continuations.scores)
    if (score) scores.push_back(*score);
  return scores.empty() ? kUnknown : mean(scores);
}

/// The values after turns: of the states that follow, or the scores of the leaves that end there.
using Values = std::map<TurnPlace, double>;

void write_advantages(Group& group, const Values& values) {
  std::map<TurnPlace, std::vector<double>> ends;
  for (const Trajectory& one : trajectories(std::span(&group, 1)))
    if (one.leaf().is_included()) ends[{one.tree_index, one.turns.back()}].push_back(one.penalised_score());
  const auto value = [&](const TurnPlace& place) {
    if (const auto found = values.find(place); found != values.end()) return found->second;
    const auto end = ends.find(place);
    return end == ends.end() ? kUnknown : mean(end->second);
  };
  for (int t = 0; t < std::ssize(group.trees); ++t) {
    Tree& tree = group.trees[t];
    for (int n = 0; n < std::ssize(tree.turns); ++n) {
      const Turn& turn = tree.turns[n];
      const double before = value(turn.parent < 0 ? TurnPlace{-1, -1} : TurnPlace{t, turn.parent});
      std::vector<double>& column = tree.columns.edit(Column::AdvantageOracle, n, static_cast<int>(turn.tokens.size()));
      for (int i = turn.sampled_begin; i < turn.sampled_end; ++i) column[i] = value({t, n}) - before;
    }
  }
}

}  // namespace

std::vector<std::string> measure_advantages(const ContinuationSource& source, std::span<Group> groups,
                                            const RolloutEvents& events) {
  std::vector<std::string> failures;
  for (Group& group : groups) {
    const std::map<TurnPlace, GivenStart> states = states_of(group);
    std::vector<RolloutTask> tasks;
    for (const auto& [place, given] : states) {
      tasks.push_back(source.task(group));
      tasks.back().given = given;
    }
    const RolloutKey key{.seed = derive_seed(source.seed, "continuations of " + group.uid), .step = group.step};
    ContinuedStates found = continue_from(source.engine, source.chat, tasks, source.options, key, events);
    failures.insert(failures.end(), found.failures.begin(), found.failures.end());
    Values values;
    std::size_t next = 0;
    for (const auto& [place, given] : states)
      values[place] = found.stopped ? kUnknown : mean_score(found.states[next++]);
    write_advantages(group, values);
  }
  return failures;
}

}  // namespace carnot
