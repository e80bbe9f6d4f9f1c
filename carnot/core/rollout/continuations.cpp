#include "carnot/core/rollout/continuations.h"

#include "carnot/core/base/check.h"
#include "carnot/core/branch/branch.h"

namespace carnot {
namespace {

Continuations continuations_of(const Group& group, const GivenStart& given) {
  Continuations out;
  for (const Tree& tree : group.trees) {
    const Leaf& leaf = tree.leaves.front();
    out.scores.push_back(leaf.valid() ? std::optional(penalised_score(tree, 0)) : std::nullopt);
    if (!leaf.valid()) continue;
    const std::vector<int> turns = path(tree, 0);
    for (std::size_t k = given.responses.size(); k < turns.size(); ++k)
      out.sampled_tokens += tree.turns[turns[k]].num_sampled();
    out.sampled_tokens -= std::ssize(given.begun);
  }
  return out;
}

}  // namespace

GivenStart start_of(const Trajectory& trajectory, int turn, int begun) {
  CARNOT_CHECK_LT(turn, trajectory.num_turns());
  CARNOT_CHECK_LT(begun, trajectory.turn(turn).num_sampled());
  const std::vector<TokenId> tokens = trajectory.tokens();
  const auto part = [&](int begin, int end) {
    return std::vector<TokenId>(tokens.begin() + begin, tokens.begin() + end);
  };
  int first = turn;  // of the context that the turn samples in
  while (first > 0 && trajectory.turn(first).context != Context::Fresh) --first;
  const int begin = trajectory.sampled_begin(turn);
  GivenStart given{.context = part(trajectory.turn_offsets[first], begin), .begun = part(begin, begin + begun)};
  for (int k = 0; k < turn; ++k) {
    CARNOT_CHECK_GT(trajectory.turn(k).num_sampled(), 0);
    given.responses.push_back(part(trajectory.sampled_begin(k), trajectory.sampled_end(k)));
  }
  return given;
}

ContinuedStates continue_from(Engine& engine, const ChatFamily& chat, std::span<const RolloutTask> states,
                              const RolloutOptions& options, const RolloutKey& key, const RolloutEvents& events) {
  const auto policy = independent();
  Rollout rollout = roll_out(engine, chat, *policy, states, options, key, events);
  ContinuedStates out{.stopped = rollout.stopped, .metrics = rollout.metrics, .failures = std::move(rollout.failures)};
  for (std::size_t s = 0; s < rollout.groups.size(); ++s)
    out.states.push_back(continuations_of(rollout.groups[s], *states[s].given));
  return out;
}

}  // namespace carnot
