#include "carnot/studies/sparse_decision.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <numeric>

#include "carnot/core/base/check.h"

namespace carnot {
namespace {

/// Action numbers, likeliest first.
std::vector<std::size_t> by_logit(std::span<const double> logits) {
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  return order;
}

/// The `count` likeliest actions, in any order.
std::vector<std::size_t> likeliest(std::span<const double> logits, std::size_t count) {
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (count < order.size())
    std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                     [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  order.resize(count);
  return order;
}

/// A depth's policy, to be sampled from.
struct Choices {
  explicit Choices(std::span<const double> logits) : policy(softmax(logits)) {
    std::partial_sum(policy.begin(), policy.end(), std::back_inserter(cumulative));
  }
  std::size_t sample(RandomStream& random) const {
    const auto found = std::upper_bound(cumulative.begin(), cumulative.end(), random.uniform() * cumulative.back());
    return std::min<std::size_t>(static_cast<std::size_t>(found - cumulative.begin()), policy.size() - 1);
  }
  std::vector<double> policy{}, cumulative{};
};

struct SampledPath {
  std::vector<std::size_t> actions{};  ///< one by depth that the path came to
  double reward = 0;
};

SampledPath sample_path(const SparseProcess& process, std::span<const Choices> choices, RandomStream& random) {
  SampledPath path;
  for (std::size_t d = 0; d < choices.size(); ++d) {
    path.actions.push_back(choices[d].sample(random));
    if (!process.optimal[d][path.actions.back()]) return path;
  }
  path.reward = 1;
  return path;
}

double product(std::span<const double> factors) {
  return std::accumulate(factors.begin(), factors.end(), 1.0, std::multiplies<>());
}

/// Probability of reaching each depth, over their sum: how often a step is there.
std::vector<double> visits(std::span<const double> mass) {
  std::vector<double> reach(mass.size(), 1);
  for (std::size_t d = 1; d < mass.size(); ++d) reach[d] = reach[d - 1] * mass[d - 1];
  const double sum = std::accumulate(reach.begin(), reach.end(), 0.0);
  for (double& r : reach) r /= sum;
  return reach;
}

void add_scaled(std::vector<double>& to, std::span<const double> values, double scale) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += scale * values[i];
}

/// 1 / standard deviation of a reward that is 1 with probability `chance`.
double reward_scale(double chance) {
  const double variance = chance * (1 - chance);
  return variance > 0 ? 1 / std::sqrt(variance) : 0;
}

}  // namespace

SparseProcess sparse_process(const SparseProcessOptions& options, RandomStream& random) {
  CARNOT_CHECK_GT(options.optimal, 0);
  CARNOT_CHECK_LE(options.optimal, options.actions / 2);
  SparseProcess process;
  for (int d = 0; d < options.depth; ++d) {
    std::vector<double> logits;
    for (int a = 0; a < options.actions; ++a) logits.push_back(options.spread * random.normal());
    std::vector<std::size_t> likely = by_logit(logits);
    likely.resize(likely.size() / 2);
    random.shuffle(likely);
    std::vector<bool> optimal(logits.size(), false);
    for (int i = 0; i < options.optimal; ++i) optimal[likely[i]] = true;
    process.logits.push_back(std::move(logits));
    process.optimal.push_back(std::move(optimal));
  }
  return process;
}

std::vector<double> softmax(std::span<const double> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  std::vector<double> shares;
  shares.reserve(logits.size());
  double sum = 0;
  for (const double x : logits) sum += shares.emplace_back(std::exp(x - largest));
  for (double& share : shares) share /= sum;
  return shares;
}

std::vector<double> optimal_mass(const SparseProcess& process) {
  std::vector<double> mass;
  for (std::size_t d = 0; d < process.logits.size(); ++d) {
    const std::vector<double> policy = softmax(process.logits[d]);
    double sum = 0;
    for (std::size_t a = 0; a < policy.size(); ++a) sum += process.optimal[d][a] ? policy[a] : 0;
    mass.push_back(sum);
  }
  return mass;
}

double expected_return(const SparseProcess& process) { return product(optimal_mass(process)); }

// d/dz_a of the mass p_d is policy_a (1[a optimal] - p_d); the other depths are factors.
std::vector<std::vector<double>> return_gradient(const SparseProcess& process) {
  const std::vector<double> mass = optimal_mass(process);
  std::vector<std::vector<double>> gradient;
  for (std::size_t d = 0; d < mass.size(); ++d) {
    double others = 1;
    for (std::size_t e = 0; e < mass.size(); ++e) others *= e == d ? 1 : mass[e];
    std::vector<double> row = softmax(process.logits[d]);
    for (std::size_t a = 0; a < row.size(); ++a) row[a] *= ((process.optimal[d][a] ? 1 : 0) - mass[d]) * others;
    gradient.push_back(std::move(row));
  }
  return gradient;
}

PathGradient exact_gradient(const SparseProcess& process, bool normalise) {
  const std::vector<double> mass = optimal_mass(process);
  PathGradient result{.visits = visits(mass), .gradient = return_gradient(process)};
  if (!normalise) return result;
  const double scale = reward_scale(product(mass));
  for (auto& row : result.gradient)
    for (double& x : row) x *= scale;
  return result;
}

PathGradient sampled_gradient(const SparseProcess& process, int paths, bool normalise, RandomStream& random) {
  const std::size_t depths = process.logits.size();
  std::vector<Choices> choices;
  for (const auto& logits : process.logits) choices.emplace_back(logits);
  std::vector<SampledPath> sampled;
  double successes = 0;
  for (int i = 0; i < paths; ++i) {
    sampled.push_back(sample_path(process, choices, random));
    successes += sampled.back().reward;
  }
  const double chance = successes / paths;
  const double scale = normalise ? reward_scale(chance) : 1;
  PathGradient result{.visits = std::vector<double>(depths, 0.0)};
  for (std::size_t d = 0; d < depths; ++d) {
    std::vector<double> row(process.logits[d].size(), 0.0);
    double sum = 0;  // of the advantages of the paths that come here
    for (const SampledPath& path : sampled) {
      if (path.actions.size() <= d) continue;
      const double advantage = (path.reward - chance) * scale / paths;
      row[path.actions[d]] += advantage;
      sum += advantage;
      result.visits[d] += 1;
    }
    add_scaled(row, choices[d].policy, -sum);
    result.gradient.push_back(std::move(row));
  }
  const double tokens = std::accumulate(result.visits.begin(), result.visits.end(), 0.0);
  for (double& visit : result.visits) visit /= tokens;
  return result;
}

ClampedEntropy clamped_entropy(std::span<const double> logits, double clamp) {
  const auto left_out = static_cast<std::size_t>(static_cast<double>(logits.size()) * clamp);
  const std::vector<std::size_t> kept = likeliest(logits, logits.size() - left_out);
  std::vector<double> kept_logits;
  for (const std::size_t a : kept) kept_logits.push_back(logits[a]);
  const std::vector<double> policy = softmax(kept_logits);
  ClampedEntropy entropy{.gradient = std::vector<double>(logits.size(), 0.0)};
  for (const double q : policy) entropy.value -= q > 0 ? q * std::log(q) : 0;
  for (std::size_t i = 0; i < kept.size(); ++i)
    entropy.gradient[kept[i]] = policy[i] > 0 ? -policy[i] * (std::log(policy[i]) + entropy.value) : 0;
  return entropy;
}

AscentCurve ascend(SparseProcess process, const AscentOptions& options, RandomStream& random) {
  const bool clamps = options.bonus == EntropyBonus::Clamped || options.bonus == EntropyBonus::Adaptive;
  AdaptiveEntropyOptions adaptive = options.adaptive;
  adaptive.enabled = options.bonus == EntropyBonus::Adaptive;
  EntropyCoefficient bonus{.coefficient = options.bonus == EntropyBonus::None ? 0 : options.coefficient};
  AscentCurve curve;
  for (int step = 0; step <= options.steps; ++step) {
    const PathGradient path = options.paths > 0 ? sampled_gradient(process, options.paths, options.normalise, random)
                                                : exact_gradient(process, options.normalise);
    std::vector<ClampedEntropy> entropies;
    double mean = 0;
    for (std::size_t d = 0; d < process.logits.size(); ++d) {
      entropies.push_back(clamped_entropy(process.logits[d], clamps ? options.clamp : 0));
      mean += path.visits[d] * entropies.back().value;
    }
    curve.expected_return.push_back(expected_return(process));
    curve.coefficient.push_back(bonus.coefficient);
    curve.entropy.push_back(mean);
    for (std::size_t d = 0; d < process.logits.size(); ++d) {
      add_scaled(process.logits[d], path.gradient[d], options.learning_rate);
      add_scaled(process.logits[d], entropies[d].gradient, options.learning_rate * bonus.coefficient * path.visits[d]);
    }
    bonus.update(adaptive, mean);
  }
  return curve;
}

}  // namespace carnot
