// A custom credit rule: the earlier a turn, the less of the trajectory's advantage it gets.
//
//   cmake --build build --target example_credit_rule && build/example_credit_rule
//
// A rule is a function over trajectories that changes a table of numbers, one per token. It runs in a chain: here
// after GRPO's, whose advantages it scales. A method is such a chain with options: docs/adding_a_method.md.
#include <cmath>
#include <cstdio>

#include "carnot/core/credit/group_relative.h"
#include "carnot/core/credit/rule.h"

using namespace carnot;

namespace {

/// A_turn = discount^(turns after it) A
CreditRule turn_discount(double discount) {
  const auto apply = [discount](std::span<const Trajectory> trajectories, CreditTable& table) {
    for (std::size_t i = 0; i < trajectories.size(); ++i)
      for (int k = 0; k < trajectories[i].num_turns(); ++k) {
        const double factor = std::pow(discount, trajectories[i].num_turns() - 1 - k);
        for (int t = trajectories[i].sampled_begin(k); t < trajectories[i].sampled_end(k); ++t)
          table[i].advantage[t] *= factor;
      }
  };
  return {.name = "turn_discount", .apply = apply, .kind = RuleKind::Modulator};
}

/// A chain of `turns` turns, each with one prompt token and two sampled ones, that ends with `score`.
Tree chain(int turns, double score) {
  Tree tree;
  for (int k = 0; k < turns; ++k)
    tree.turns.push_back({.parent = k - 1, .tokens = {7, 8, 9}, .sampled_begin = 1, .sampled_end = 3});
  tree.turns.back().reward = score;
  tree.leaves.push_back({.turn = turns - 1, .score = score, .success = score > 0});
  return tree;
}

}  // namespace

int main() {
  // A rollout would fill this: four trajectories of one task, two of them correct.
  std::vector<Group> groups{{.uid = "task", .trees = {chain(3, 1), chain(2, 0), chain(1, 0), chain(2, 1)}}};
  const std::vector<Trajectory> all = trajectories(groups);
  const std::vector<CreditRule> rules{group_relative({}), turn_discount(0.5)};
  const CreditTable credit = run_credit(rules, all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::printf("trajectory %zu, score %g:", i, all[i].leaf().score);
    for (int k = 0; k < all[i].num_turns(); ++k) std::printf("  %+.3f", credit[i].advantage[all[i].sampled_begin(k)]);
    std::printf("\n");
  }
  // The last turn has the whole advantage, the one before half of it.
  const double last = credit[0].advantage[all[0].sampled_begin(2)],
               before = credit[0].advantage[all[0].sampled_begin(1)];
  return last > 0 && before == 0.5 * last ? 0 : 1;
}
