#include "carnot/studies/sparse_decision.h"

#include <algorithm>
#include <cmath>
#include <functional>
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

AscentCurve ascend(SparseProcess process, const AscentOptions& options) {
  const bool clamps = options.bonus == EntropyBonus::Clamped || options.bonus == EntropyBonus::Adaptive;
  AdaptiveEntropyOptions adaptive = options.adaptive;
  adaptive.enabled = options.bonus == EntropyBonus::Adaptive;
  EntropyCoefficient bonus{.coefficient = options.bonus == EntropyBonus::None ? 0 : options.coefficient};
  AscentCurve curve;
  for (int step = 0; step <= options.steps; ++step) {
    const std::vector<double> mass = optimal_mass(process);
    const std::vector<double> visited = visits(mass);
    std::vector<ClampedEntropy> entropies;
    double mean = 0;
    for (std::size_t d = 0; d < process.logits.size(); ++d) {
      entropies.push_back(clamped_entropy(process.logits[d], clamps ? options.clamp : 0));
      mean += visited[d] * entropies.back().value;
    }
    const double reward = product(mass);
    curve.expected_return.push_back(reward);
    curve.coefficient.push_back(bonus.coefficient);
    curve.entropy.push_back(mean);
    const auto gradient = return_gradient(process);
    const double scale = options.normalise ? reward_scale(reward) : 1;
    for (std::size_t d = 0; d < process.logits.size(); ++d) {
      add_scaled(process.logits[d], gradient[d], options.learning_rate * scale);
      add_scaled(process.logits[d], entropies[d].gradient, options.learning_rate * bonus.coefficient * visited[d]);
    }
    bonus.update(adaptive, mean);
  }
  return curve;
}

}  // namespace carnot
