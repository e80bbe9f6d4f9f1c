#include "carnot/studies/oracle_plan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "carnot/core/base/random.h"
#include "carnot/core/credit/rule.h"
#include "carnot/core/text/span_parser.h"

namespace carnot {
namespace {

/// Every turn has a response: the trajectory was played.
bool was_played(const Trajectory& one) {
  for (int k = 0; k < one.num_turns(); ++k)
    if (one.turn(k).num_sampled() == 0) return false;
  return one.leaf().is_included() && one.num_turns() > 0;
}

std::span<const TokenId> response_of(const Turn& turn) {
  return {turn.tokens.data() + turn.sampled_begin, static_cast<std::size_t>(turn.num_sampled())};
}

/// Gives states their numbers; the prompt's is shared.
class States {
 public:
  States(std::span<const Trajectory> all, OraclePlan& plan) : all_(all), plan_(plan) {}

  int number_of(const OracleState& state) {
    if (state.turn > 0 || state.begun > 0) return add(state);
    const Turn& turn = all_[state.trajectory].turn(0);
    const std::vector<TokenId> prompt(turn.tokens.begin(), turn.tokens.begin() + turn.sampled_begin);
    const auto [found, is_new] = prompts_.try_emplace({all_[state.trajectory].group_index, prompt}, -1);
    if (is_new) found->second = add(state);
    return found->second;
  }

 private:
  int add(const OracleState& state) {
    plan_.states.push_back(state);
    return static_cast<int>(plan_.states.size()) - 1;
  }

  std::span<const Trajectory> all_;
  OraclePlan& plan_;
  std::map<std::pair<int, std::vector<TokenId>>, int> prompts_{};
};

}  // namespace

std::vector<int> choose_trajectories(std::span<const Trajectory> all, int count, std::uint64_t seed) {
  std::vector<int> order;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (was_played(all[i])) order.push_back(static_cast<int>(i));
  RandomStream random(seed);
  random.shuffle(order);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return std::pair(all[a].num_turns(), all[a].leaf().score) < std::pair(all[b].num_turns(), all[b].leaf().score);
  });
  const auto size = static_cast<std::int64_t>(order.size());
  if (size > count) {
    std::vector<int> some;
    for (std::int64_t i = 0; i < count; ++i) some.push_back(order[(2 * i + 1) * size / (2 * count)]);
    order = std::move(some);
  }
  std::sort(order.begin(), order.end());
  return order;
}

OraclePlan plan_oracle(std::span<const Trajectory> all, std::span<const int> chosen, const Tokenizer& tokenizer,
                       const std::string& think_tag) {
  OraclePlan plan;
  States states(all, plan);
  for (const int i : chosen) {
    const Trajectory& one = all[i];
    const double score = one.penalised_score();
    int before = states.number_of({.trajectory = i});
    for (int k = 0; k < one.num_turns(); ++k) {
      OracleTurn turn{.trajectory = i, .turn = k, .before = before, .score = score};
      turn.thought = tokens_of_thought(tokenizer, response_of(one.turn(k)), think_tag);
      if (turn.thought > 0) turn.inside = states.number_of({.trajectory = i, .turn = k, .begun = turn.thought});
      if (k + 1 < one.num_turns()) turn.after = before = states.number_of({.trajectory = i, .turn = k + 1});
      plan.turns.push_back(turn);
    }
  }
  return plan;
}

std::map<int, Credit> oracle_credit(std::span<const Trajectory> all, const OraclePlan& plan,
                                    std::span<const StateValue> values) {
  std::map<int, Credit> credits;
  std::set<int> unknown;
  for (const OracleTurn& turn : plan.turns) {
    const Trajectory& one = all[static_cast<std::size_t>(turn.trajectory)];
    const double advantage = advantage_of(turn, values).turn;
    if (!std::isfinite(advantage)) unknown.insert(turn.trajectory);
    const auto [found, is_new] = credits.try_emplace(turn.trajectory);
    if (is_new) found->second = fresh_credit(std::span(&one, 1))[0];
    for (double& value : sampled_part(found->second.advantage, one, turn.turn)) value = advantage;
  }
  for (const int trajectory : unknown) credits.erase(trajectory);
  return credits;
}

}  // namespace carnot
