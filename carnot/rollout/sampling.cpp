#include "carnot/rollout/sampling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "carnot/base/check.h"

namespace carnot {
namespace {

constexpr std::size_t kMaxStrips = 256;

// exp(logit / temperature - peak), where peak is the largest logit / temperature.
struct Weights {
  std::span<const float> logits;
  double inverse_temperature = 1;
  double peak = 0;

  double shifted(std::size_t i) const { return static_cast<double>(logits[i]) * inverse_temperature - peak; }
  double at(std::size_t i) const { return std::exp(shifted(i)); }
};

// The weights' sums strip by strip, so that a draw finds its strip without computing every weight again.
struct StripSums {
  std::size_t strip = 1;  // tokens a strip
  std::size_t count = 0;
  std::array<double, kMaxStrips> sums{};
  double total = 0;
  double weighted_shift = 0;  // sum of weight * shifted: does not cancel where the entropy is tiny
};

StripSums sum_strips(const Weights& weights) {
  StripSums out;
  const std::size_t vocabulary = weights.logits.size();
  out.strip = (vocabulary + kMaxStrips - 1) / kMaxStrips;
  for (std::size_t begin = 0; begin < vocabulary; begin += out.strip) {
    const std::size_t end = std::min(begin + out.strip, vocabulary);
    double sum = 0, shift_sum = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const double shift = weights.shifted(i);
      const double weight = std::exp(shift);
      sum += weight;
      if (weight > 0) shift_sum += weight * shift;  // 0 * -inf is not a number
    }
    out.sums[out.count++] = sum;
    out.total += sum;
    out.weighted_shift += shift_sum;
  }
  return out;
}

std::size_t draw_uncut(const Weights& weights, const StripSums& sums, double uniform) {
  // Rounding must not push the target to the total; below it, both walks end inside.
  const double target = std::min(uniform * sums.total, std::nextafter(sums.total, 0.0));
  double before = 0;
  std::size_t s = 0;
  while (before + sums.sums[s] <= target) before += sums.sums[s++];
  std::size_t token = s * sums.strip;
  for (double inside = weights.at(token); before + inside <= target; inside += weights.at(token)) ++token;
  return token;
}

std::size_t draw_cut(const Weights& weights, const SamplingOptions& options, double uniform) {
  thread_local std::vector<std::uint32_t> order;
  order.resize(weights.logits.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint32_t>(i);
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    return weights.logits[a] != weights.logits[b] ? weights.logits[a] > weights.logits[b] : a < b;
  };
  const auto kept = static_cast<std::size_t>(options.top_k);
  if (kept > 0 && kept < order.size()) {
    std::nth_element(order.begin(), order.begin() + static_cast<long>(kept), order.end(), before);
    order.resize(kept);
  }
  std::sort(order.begin(), order.end(), before);

  double mass = 0;
  for (std::uint32_t token : order) mass += weights.at(token);
  double nucleus = 0;
  std::size_t size = 0;
  while (size < order.size() && (size == 0 || nucleus < options.top_p * mass)) nucleus += weights.at(order[size++]);

  const double target = uniform * nucleus;
  double cumulative = 0;
  for (std::size_t i = 0; i + 1 < size; ++i) {
    cumulative += weights.at(order[i]);
    if (cumulative > target) return order[i];
  }
  return order[size - 1];
}

}  // namespace

void SamplingOptions::fields(FieldVisitor& visit) {
  visit.field("temperature", temperature, "logits are divided by it; 0 takes the most likely token", at_least(0));
  visit.field("top_p", top_p, "sample from the most likely tokens with this mass; 1 keeps all", Limits{.low = 0, .high = 1, .open_low = true});
  visit.field("top_k", top_k, "sample from this many most likely tokens; 0 keeps all", at_least(0));
}

TokenDraw sample_token(std::span<const float> logits, const SamplingOptions& options, double uniform) {
  CARNOT_CHECK(!logits.empty(), "no logits to sample from");
  const auto largest = static_cast<std::size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  CARNOT_CHECK(std::isfinite(logits[largest]), "the largest logit is not a finite number");
  const bool greedy = options.temperature == 0;
  Weights weights{.logits = logits, .inverse_temperature = greedy ? 1 : 1 / options.temperature};
  weights.peak = static_cast<double>(logits[largest]) * weights.inverse_temperature;

  const StripSums sums = sum_strips(weights);
  const bool cut = options.top_k > 0 || options.top_p < 1;
  const std::size_t token = greedy ? largest : cut ? draw_cut(weights, options, uniform) : draw_uncut(weights, sums, uniform);
  const double log_total = std::log(sums.total);
  return {.token = static_cast<TokenId>(token),
          .log_prob = weights.shifted(token) - log_total,
          .entropy = std::max(0.0, log_total - sums.weighted_shift / sums.total),
          .logsumexp = weights.peak + log_total};
}

}  // namespace carnot
