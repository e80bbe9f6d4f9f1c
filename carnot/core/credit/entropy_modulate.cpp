#include "carnot/core/credit/entropy_modulate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "carnot/core/base/random.h"
#include "carnot/core/base/statistics.h"
#include "carnot/core/credit/rule.h"

namespace carnot {
namespace {

/// A turn of a tree and every trajectory that contains it: (trajectory, place in its path).
struct Response {
  double entropy = 0;
  std::vector<std::pair<std::size_t, int>> passages{};
};

double mean_entropy(const Trajectory& trajectory, int k) {
  const auto& entropy = trajectory.tree->columns.turn(Column::EntropyOld, trajectory.turns[k]);
  const Turn& turn = trajectory.turn(k);
  return mean(std::span(entropy).subspan(turn.sampled_begin, turn.num_sampled()));
}

using ScopeKey = std::pair<int, int>;

ScopeKey scope_of(const Trajectory& trajectory, int number, ModulationScope scope) {
  if (scope == ModulationScope::Batch) return {0, 0};
  return {trajectory.group_index, scope == ModulationScope::Trajectory ? number : 0};
}

std::map<ScopeKey, std::vector<Response>> responses_by_scope(std::span<const Trajectory> trajectories,
                                                             ModulationScope scope) {
  std::map<ScopeKey, std::vector<Response>> scopes;
  std::map<std::tuple<ScopeKey, int, int, int>, std::size_t> known;
  for (std::size_t i = 0; i < trajectories.size(); ++i) {
    const Trajectory& one = trajectories[i];
    if (!one.leaf().is_included()) continue;
    const ScopeKey key = scope_of(one, static_cast<int>(i), scope);
    for (int k = 0; k < one.num_turns(); ++k) {
      if (one.turn(k).num_sampled() == 0) continue;
      auto& responses = scopes[key];
      const std::tuple identity(key, one.group_index, one.tree_index, one.turns[k]);
      const auto [at, is_new] = known.try_emplace(identity, responses.size());
      if (is_new) responses.push_back({.entropy = mean_entropy(one, k)});
      responses[at->second].passages.emplace_back(i, k);
    }
  }
  return scopes;
}

void modulate(std::span<const Trajectory> trajectories, CreditTable& table, std::span<const Response> responses,
              const EntropyModulateOptions& options) {
  std::vector<double> entropies;
  for (const Response& response : responses) entropies.push_back(response.entropy);
  std::vector<double> factors = modulation(entropies, options);
  if (options.shuffle) {
    const Group& group = *trajectories[responses.front().passages.front().first].group;
    const auto step = static_cast<std::uint64_t>(std::max<std::int64_t>(1, group.step) - 1);
    RandomStream random(derive_seed(group.seed, "entropy_modulate", step));
    random.shuffle(factors);
  }
  for (std::size_t r = 0; r < responses.size(); ++r)
    for (const auto& [i, k] : responses[r].passages)
      for (double& a : sampled_part(table[i].advantage, trajectories[i], k)) a *= factors[r];
}

/// Entropies in order: their ranks count from 1, the lowest first.
void read_responses(std::span<const Response> responses, RuleReadings& readings) {
  std::vector<double> sorted;
  for (const Response& response : responses) sorted.push_back(response.entropy);
  std::ranges::sort(sorted);
  for (const Response& response : responses) {
    const auto rank = std::ranges::lower_bound(sorted, response.entropy) - sorted.begin() + 1;
    for (const auto& [i, k] : response.passages) {
      readings.set_turn("response entropy", i, k, response.entropy);
      readings.set_turn("its rank", i, k, static_cast<double>(rank));
      readings.set_turn("responses compared", i, k, static_cast<double>(sorted.size()));
    }
  }
}

}  // namespace

void EntropyModulateOptions::fields(FieldVisitor& visit) {
  visit.field("lambda", lambda, "strength; 0: off; below 0: reversed (ablation)");
  visit.field("gate", gate, "nats; a narrower spread of response entropies leaves all factors at 1", at_least(0));
  visit.field("epsilon", epsilon, "keeps denominators above 0", above(0));
  enum_field(visit, "scope", scope, {"group", "trajectory", "batch"}, "over what responses are compared");
  visit.field("shuffle", shuffle, "shuffle the factors within a scope (ablation)");
}

CreditRule entropy_modulate(const EntropyModulateOptions& options) {
  const auto apply = [options](std::span<const Trajectory> trajectories, CreditTable& table) {
    if (options.lambda == 0) return;
    for (const auto& [key, responses] : responses_by_scope(trajectories, options.scope))
      modulate(trajectories, table, responses, options);
  };
  const auto read = [options](std::span<const Trajectory> trajectories, const CreditTable&, RuleReadings& readings) {
    if (options.lambda == 0) return;
    for (const auto& [key, responses] : responses_by_scope(trajectories, options.scope))
      read_responses(responses, readings);
  };
  return {.name = "entropy_modulate",
          .apply = apply,
          .read = read,
          .columns = {Column::EntropyOld},
          .kind = RuleKind::Modulator};
}

std::vector<double> modulation(std::span<const double> entropies, const EntropyModulateOptions& options) {
  std::vector<double> factors(entropies.size(), 1.0);
  if (entropies.empty() || options.lambda == 0) return factors;
  const auto [low, high] = std::minmax_element(entropies.begin(), entropies.end());
  const double spread = *high - *low;
  if (spread < options.gate) return factors;
  for (std::size_t r = 0; r < factors.size(); ++r)
    factors[r] = std::exp(-options.lambda * (entropies[r] - *low) / (spread + options.epsilon));
  const double divisor = mean(factors) + options.epsilon;
  for (double& factor : factors) factor /= divisor;
  return factors;
}

std::vector<double> entropy_scale(std::span<const double> entropies, double strength) {
  std::vector<double> factors(entropies.size(), 1.0);
  if (strength == 0 || all_equal(entropies)) return factors;
  const double centre = mean(entropies);
  const double deviation = std_sample(entropies);
  const double divisor = deviation > 0 ? deviation : 1;
  for (std::size_t t = 0; t < factors.size(); ++t) factors[t] = 1 + strength * ((entropies[t] - centre) / divisor);
  return factors;
}

}  // namespace carnot
