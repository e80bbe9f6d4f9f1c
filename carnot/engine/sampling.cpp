#include "carnot/engine/sampling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "carnot/base/check.h"
#include "carnot/kernel/dispatch.h"

namespace carnot {
namespace {

constexpr std::size_t kMaxStrips = 256;

/// What can be drawn from: probabilities are exponentials * factor.
struct Drawable {
  std::span<float> exponentials{};
  float factor = 0;

  float probability(std::size_t i) const { return exponentials[i] * factor; }
};

// Sums of probabilities strip by strip.
std::span<const double> sums_of(const Drawable& drawable, std::size_t strip, std::array<double, kMaxStrips>& memory) {
  const std::size_t size = drawable.exponentials.size();
  kernel::kernel_table<float>().strip_sums(static_cast<std::int64_t>(size), static_cast<std::int64_t>(strip),
                                           drawable.factor, drawable.exponentials.data(), memory.data());
  return std::span(memory).first((size + strip - 1) / strip);
}

std::size_t draw_uncut(const Drawable& drawable, double uniform) {
  const std::size_t size = drawable.exponentials.size(), strip = (size + kMaxStrips - 1) / kMaxStrips;
  std::array<double, kMaxStrips> memory{};
  const auto sums = sums_of(drawable, strip, memory);
  const double total = std::accumulate(sums.begin(), sums.end(), 0.0);
  // Below the total even after rounding, so that the walk ends in a strip with mass.
  const double target = std::min(uniform * total, std::nextafter(total, 0.0));
  double cumulative = 0;
  std::size_t s = 0;
  while (cumulative + sums[s] <= target) cumulative += sums[s++];
  std::size_t chosen = 0;
  for (std::size_t i = s * strip; i < std::min((s + 1) * strip, size) && cumulative <= target; ++i) {
    const float probability = drawable.probability(i);
    if (probability <= 0) continue;
    chosen = i;
    cumulative += static_cast<double>(probability);
  }
  return chosen;
}

// The `kept` ids of the largest logits, largest first, ties to the smaller id.
std::span<const std::uint32_t> by_logit(std::span<const float> logits, std::size_t kept) {
  thread_local std::vector<std::uint32_t> order;
  order.resize(logits.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  };
  if (kept < order.size()) {
    std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(), before);
    order.resize(kept);
  }
  std::sort(order.begin(), order.end(), before);
  return order;
}

// The shortest run of most likely tokens that holds `mass`; looks at a few first, at more where they do not reach it.
std::span<const std::uint32_t> nucleus(std::span<const float> logits, const Drawable& drawable, double mass,
                                       std::size_t most) {
  for (std::size_t kept = std::min<std::size_t>(64, most);; kept = std::min(8 * kept, most)) {
    const auto order = by_logit(logits, kept);
    double sum = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      sum += static_cast<double>(drawable.probability(order[i]));
      if (sum >= mass) return order.first(i + 1);
    }
    if (kept == most) return order;
  }
}

std::size_t draw_cut(std::span<const float> logits, const Drawable& drawable, const SamplingOptions& options,
                     double uniform) {
  const std::size_t all = logits.size();
  const std::size_t most = options.top_k > 0 ? std::min(all, static_cast<std::size_t>(options.top_k)) : all;
  double mass = 0;
  if (most < all) {
    for (std::uint32_t token : by_logit(logits, most)) mass += static_cast<double>(drawable.probability(token));
  } else {
    std::array<double, kMaxStrips> memory{};
    mass = sums_of(drawable, all, memory)[0];
  }
  const auto kept = nucleus(logits, drawable, options.top_p < 1 ? options.top_p * mass : 2 * mass, most);
  double kept_mass = 0;
  for (std::uint32_t token : kept) kept_mass += static_cast<double>(drawable.probability(token));
  const double target = uniform * kept_mass;
  double cumulative = 0;
  for (std::uint32_t token : kept) {
    cumulative += static_cast<double>(drawable.probability(token));
    if (cumulative > target) return token;
  }
  return kept.front();
}

std::size_t largest_of(std::span<const float> logits) {
  return static_cast<std::size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

// Statistics of all logits, which are left divided by the temperature, and what can be drawn, in memory of this thread.
Drawable statistics_and_drawable(std::span<float> logits, double temperature, int drawable, TokenDraw& draw) {
  thread_local std::vector<float> memory;
  memory.resize(std::max(memory.size(), logits.size()));
  Drawable found{.exponentials = std::span(memory).first(static_cast<std::size_t>(drawable))};
  kernel::kernel_table<float>().row_draw(static_cast<std::int64_t>(logits.size()), drawable,
                                         static_cast<float>(1 / temperature), logits.data(), &draw.logsumexp,
                                         &draw.entropy, memory.data(), &found.factor);
  return found;
}

// As engines that return only a few candidates would have it (branch/turn_entropy.h).
double candidate_entropy(std::span<const float> logits, const TokenDraw& draw, int candidates) {
  double sum = 0;
  const auto add = [&](double log_prob) {
    if (std::isfinite(log_prob)) sum -= std::exp(log_prob) * log_prob;
  };
  bool saw_drawn = false;
  for (std::uint32_t token : by_logit(logits, candidates)) {
    add(static_cast<double>(logits[token]) - static_cast<double>(draw.logsumexp));
    saw_drawn = saw_drawn || static_cast<TokenId>(token) == draw.token;
  }
  if (!saw_drawn) add(static_cast<double>(draw.log_prob));
  return sum;
}

void check_finite(const TokenDraw& draw) {
  CARNOT_CHECK(std::isfinite(draw.logsumexp), "a logit, or the largest one, is not a finite number");
}

}  // namespace

void SamplingOptions::fields(FieldVisitor& visit) {
  visit.field("temperature", temperature, "logits are divided by it; 0 takes the most likely token", at_least(0));
  visit.field("top_p", top_p, "sample from the most likely tokens with this mass; 1 keeps all",
              Limits{.low = 0, .high = 1, .open_low = true});
  visit.field("top_k", top_k, "sample from this many most likely tokens; 0 keeps all", at_least(0));
}

TokenDraw sample_token(std::span<float> logits, const SamplingOptions& options, const RowRequest& request) {
  CARNOT_CHECK_GT(request.drawable, 0);
  CARNOT_CHECK_LE(static_cast<std::size_t>(request.drawable), logits.size());
  const auto drawable = std::span<const float>(logits).first(request.drawable);
  TokenDraw draw;
  std::size_t token = 0;
  if (options.temperature == 0) {
    kernel::kernel_table<float>().row_statistics(static_cast<std::int64_t>(logits.size()), 1, logits.data(),
                                                 &draw.logsumexp, &draw.entropy);
    check_finite(draw);
    token = largest_of(drawable);
  } else {
    const Drawable from = statistics_and_drawable(logits, options.temperature, request.drawable, draw);
    check_finite(draw);
    token = options.top_k > 0 || options.top_p < 1 ? draw_cut(drawable, from, options, request.uniform)
                                                   : draw_uncut(from, request.uniform);
  }
  draw.token = static_cast<TokenId>(token);
  draw.log_prob = logits[token] - draw.logsumexp;
  if (request.candidates > 0) draw.candidate_entropy = candidate_entropy(logits, draw, request.candidates);
  return draw;
}

float log_prob_of(std::span<float> logits, TokenId token, double temperature) {
  CARNOT_CHECK_LT(static_cast<std::size_t>(token), logits.size());
  const double divisor = temperature == 0 ? 1 : temperature;
  float logsumexp = 0, entropy = 0;
  kernel::kernel_table<float>().row_statistics(static_cast<std::int64_t>(logits.size()),
                                               static_cast<float>(1 / divisor), logits.data(), &logsumexp, &entropy);
  CARNOT_CHECK(std::isfinite(logsumexp), "a logit, or the largest one, is not a finite number");
  return logits[static_cast<std::size_t>(token)] - logsumexp;
}

std::vector<TokenLogProb> likeliest_tokens(std::span<const float> logits, float logsumexp, int count) {
  CARNOT_CHECK_GE(count, 0);
  std::vector<TokenLogProb> tokens;
  if (count == 0) return tokens;
  for (const std::uint32_t token : by_logit(logits, std::min(logits.size(), static_cast<std::size_t>(count))))
    tokens.push_back({.token = static_cast<TokenId>(token), .log_prob = logits[token] - logsumexp});
  return tokens;
}

}  // namespace carnot
