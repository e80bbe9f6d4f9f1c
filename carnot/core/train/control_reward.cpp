#include "carnot/core/train/control_reward.h"

#include "carnot/core/base/random.h"

namespace carnot {
namespace {

double random_reward(std::uint64_t seed, const Group& group, const Leaf& leaf) {
  const std::uint64_t task = derive_seed(derive_seed(seed, "control_reward", static_cast<std::uint64_t>(group.step)),
                                         "task", static_cast<std::uint64_t>(group.task_index));
  return RandomStream(derive_seed(task, "sibling", static_cast<std::uint64_t>(leaf.sibling))).chance(0.5) ? 1 : 0;
}

}  // namespace

void replace_rewards(const std::string& word, std::uint64_t seed, std::vector<Group>& groups) {
  if (word == "environment") return;
  for (Group& group : groups)
    for (Tree& tree : group.trees) {
      for (Turn& turn : tree.turns) turn.reward = turn.penalty = 0;
      for (Leaf& leaf : tree.leaves) {
        leaf.score = 0;
        if (!leaf.valid()) continue;
        Turn& last = tree.turns.at(leaf.turn);
        const bool well_formed = leaf.outcome == Outcome::Finished && last.valid_action;
        leaf.score = word == "random" ? random_reward(seed, group, leaf) : well_formed ? 1 : 0;
        last.reward = leaf.score;
      }
    }
}

}  // namespace carnot
