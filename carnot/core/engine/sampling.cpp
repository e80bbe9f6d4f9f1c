#include "carnot/core/engine/sampling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "carnot/core/base/check.h"
#include "carnot/core/kernel/dispatch.h"
#include "carnot/core/kernel/statistics/segments.h"

namespace carnot {
namespace {

constexpr std::size_t kMaxStrips = 256;
constexpr double kLeastMass = 0x1p-126;  // of the likeliest token's; what is less, float32 has not

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

/// The strip of the line that covers the target, and where the strip begins.
struct StripChoice {
  std::size_t strip = 0;
  double begin = 0;
  double target = 0;
};

StripChoice choose_strip(std::span<const double> masses, double uniform) {
  const double total = std::accumulate(masses.begin(), masses.end(), 0.0);
  // Below the total even after rounding, so that the walk ends in a strip with mass.
  StripChoice choice{.target = std::min(uniform * total, std::nextafter(total, 0.0))};
  while (choice.begin + masses[choice.strip] <= choice.target) choice.begin += masses[choice.strip++];
  return choice;
}

/// Which of a strip's tokens covers the target; the last one with mass where rounding leaves a gap.
template <class Mass>
std::size_t choose_within(const StripChoice& choice, std::size_t size, Mass mass) {
  double cumulative = choice.begin;
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < size && cumulative <= choice.target; ++i) {
    const double own = mass(i);
    if (own <= 0) continue;
    chosen = i;
    cumulative += own;
  }
  return chosen;
}

std::size_t draw_uncut(const Drawable& drawable, double uniform) {
  const std::size_t size = drawable.exponentials.size(), strip = (size + kMaxStrips - 1) / kMaxStrips;
  std::array<double, kMaxStrips> memory{};
  const StripChoice choice = choose_strip(sums_of(drawable, strip, memory), uniform);
  const std::size_t first = choice.strip * strip;
  return first + choose_within(choice, std::min(strip, size - first),
                               [&](std::size_t i) { return static_cast<double>(drawable.probability(first + i)); });
}

/// What draw_uncut does, of a row with segments: their statistics say which one it is, and only that one is read.
std::size_t draw_by_segment(const LogitRow& row, std::size_t drawable, double uniform) {
  constexpr std::size_t kSize = kernel::kSegment;
  const auto& kernels = kernel::kernel_table<float>();
  thread_local std::vector<kernel::SegmentStatistics<float>> segments;
  thread_local std::vector<double> masses;
  const std::size_t last = (drawable - 1) / kSize * kSize;
  segments.assign(row.segments.begin(), row.segments.begin() + static_cast<std::ptrdiff_t>(last / kSize + 1));
  kernels.segment_statistics(static_cast<std::int64_t>(drawable - last), 1, &row.logits[last], &segments.back());
  const auto maximum =
      static_cast<double>(std::ranges::max_element(segments, {}, &kernel::SegmentStatistics<float>::maximum)->maximum);
  const auto weight = [&](std::size_t s) {
    const double of_largest = std::exp(static_cast<double>(segments[s].maximum) - maximum);
    return of_largest < kLeastMass ? 0 : of_largest;
  };
  masses.clear();
  for (std::size_t s = 0; s < segments.size(); ++s) masses.push_back(weight(s) * static_cast<double>(segments[s].sum));
  const StripChoice choice = choose_strip(masses, uniform);
  const std::size_t first = choice.strip * kSize, size = std::min(kSize, drawable - first);
  std::array<float, kSize> exponentials;
  float logsumexp = 0, entropy = 0, factor = 0;
  kernels.row_draw(static_cast<std::int64_t>(size), static_cast<std::int64_t>(size), 1, &row.logits[first], &logsumexp,
                   &entropy, exponentials.data(), &factor);
  return first + choose_within(choice, size, [&, of_segment = weight(choice.strip)](std::size_t i) {
           const double mass = of_segment * static_cast<double>(exponentials[i]);
           return mass < kLeastMass ? 0 : mass;
         });
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

void check_finite(const kernel::RowStatistics& all) {
  CARNOT_CHECK(std::isfinite(all.logsumexp), "a logit, or the largest one, is not a finite number");
}

/// Of all logits, which are left divided by the temperature.
kernel::RowStatistics statistics_of(const LogitRow& row, double temperature) {
  if (!row.segments.empty()) return kernel::statistics_of(row.segments);
  kernel::RowStatistics all;
  kernel::kernel_table<float>().row_statistics(static_cast<std::int64_t>(row.logits.size()),
                                               inverse_temperature(temperature), row.logits.data(), &all.logsumexp,
                                               &all.entropy);
  return all;
}

/// What can be drawn, in memory of this thread, and the statistics of all logits, which are left divided by the
/// temperature.
Drawable drawable_of(const LogitRow& row, double temperature, int drawable, kernel::RowStatistics& all) {
  thread_local std::vector<float> memory;
  memory.resize(std::max(memory.size(), row.logits.size()));
  Drawable found{.exponentials = std::span(memory).first(static_cast<std::size_t>(drawable))};
  const bool is_divided = !row.segments.empty();
  kernel::kernel_table<float>().row_draw(static_cast<std::int64_t>(row.logits.size()), drawable,
                                         is_divided ? 1 : inverse_temperature(temperature), row.logits.data(),
                                         &all.logsumexp, &all.entropy, memory.data(), &found.factor);
  if (is_divided) all = kernel::statistics_of(row.segments);
  return found;
}

/// The token, and the statistics of all logits, which are left divided by the temperature.
std::size_t choose_token(const LogitRow& row, const SamplingOptions& options, const RowRequest& request,
                         kernel::RowStatistics& all) {
  const auto drawable = std::span<const float>(row.logits).first(request.drawable);
  if (options.temperature == 0) {
    all = statistics_of(row, 0);
    check_finite(all);
    return largest_of(drawable);
  }
  const bool is_cut = options.top_k > 0 || options.top_p < 1;
  if (!is_cut && !row.segments.empty()) {
    all = statistics_of(row, options.temperature);
    check_finite(all);
    return draw_by_segment(row, drawable.size(), request.uniform);
  }
  const Drawable from = drawable_of(row, options.temperature, request.drawable, all);
  check_finite(all);
  return is_cut ? draw_cut(drawable, from, options, request.uniform) : draw_uncut(from, request.uniform);
}

// As engines that return only a few candidates would have it (branch/branch.h).
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

}  // namespace

void SamplingOptions::fields(FieldVisitor& visit) {
  visit.field("temperature", temperature, "logits are divided by it; 0 takes the most likely token", at_least(0));
  visit.field("top_p", top_p, "sample from the most likely tokens with this mass; 1 keeps all",
              Limits{.low = 0, .high = 1, .open_low = true});
  visit.field("top_k", top_k, "sample from this many most likely tokens; 0 keeps all", at_least(0));
}

TokenDraw sample_token(const LogitRow& row, const SamplingOptions& options, const RowRequest& request) {
  CARNOT_CHECK_GT(request.drawable, 0);
  CARNOT_CHECK_LE(static_cast<std::size_t>(request.drawable), row.logits.size());
  kernel::RowStatistics all;
  const std::size_t token = choose_token(row, options, request, all);
  TokenDraw draw{.token = static_cast<TokenId>(token),
                 .log_prob = row.logits[token] - all.logsumexp,
                 .entropy = all.entropy,
                 .logsumexp = all.logsumexp};
  if (request.candidates > 0) draw.candidate_entropy = candidate_entropy(row.logits, draw, request.candidates);
  return draw;
}

float log_prob_of(const LogitRow& row, TokenId token, double temperature) {
  CARNOT_CHECK_LT(static_cast<std::size_t>(token), row.logits.size());
  const kernel::RowStatistics all = statistics_of(row, temperature);
  check_finite(all);
  return row.logits[static_cast<std::size_t>(token)] - all.logsumexp;
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
