#include "carnot/core/engine/sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "carnot/core/base/check.h"
#include "carnot/core/base/random.h"
#include "carnot/core/kernel/statistics/segments.h"
#include "reference/decoder.h"

namespace carnot {
namespace {

constexpr float kImpossible = -200;

std::vector<float> random_logits(RandomStream& random, int size, double spread) {
  std::vector<float> logits(size);
  for (float& logit : logits) logit = static_cast<float>(spread * random.normal());
  return logits;
}

TokenDraw sample(std::vector<float> logits, const SamplingOptions& options, double uniform) {
  const int drawable = static_cast<int>(logits.size());
  return sample_token({logits}, options, {.drawable = drawable, .uniform = uniform});
}

/// The same of a row that a product measured segment by segment.
TokenDraw sample_segments(std::vector<float> logits, const SamplingOptions& options, const RowRequest& request) {
  std::vector<kernel::SegmentStatistics<float>> segments;
  for (std::size_t first = 0; first < logits.size(); first += kernel::kSegment)
    kernel::kernel_table<float>().segment_statistics(
        std::min<std::int64_t>(kernel::kSegment, static_cast<std::int64_t>(logits.size() - first)),
        inverse_temperature(options.temperature), &logits[first], &segments.emplace_back());
  return sample_token({.logits = logits, .segments = segments}, options, request);
}

TEST(Sampling, OfARowWithSegmentsMatchesTheDefinitionOnRandomRows) {
  RandomStream random(2);
  const SamplingOptions choices[] = {
      {}, {.temperature = 0.6}, {.top_k = 5}, {.temperature = 1.3, .top_p = 0.9}, {.temperature = 0}};
  for (int trial = 0; trial < 500; ++trial) {
    const SamplingOptions& options = choices[trial % 5];
    const int size = 1 + static_cast<int>(random.below(2200));
    const int drawable = trial % 3 == 0 ? 1 + static_cast<int>(random.below(size)) : size;
    std::vector<float> logits = random_logits(random, size, 0.5 + random.uniform() * 4);
    if (trial % 7 == 0) logits.back() += 120;  // what is drawn may have next to no mass
    const double uniform = random.uniform();
    const TokenDraw draw = sample_segments(logits, options, {.drawable = drawable, .uniform = uniform});
    const std::vector<double> all(logits.begin(), logits.end());
    const reference::DecodeRequest twin_options{
        .temperature = options.temperature, .top_k = options.top_k, .top_p = options.top_p};
    const reference::Draw of_drawable = reference::draw({all.begin(), all.begin() + drawable}, twin_options, uniform);
    ASSERT_EQ(draw.token, of_drawable.token) << "trial " << trial;
    const reference::Draw of_all = reference::draw(all, twin_options, uniform);
    EXPECT_NEAR(draw.entropy, of_all.entropy, 2e-5);
    EXPECT_NEAR(draw.logsumexp, of_all.logsumexp, 2e-5);
    if (drawable == size) {
      EXPECT_NEAR(draw.log_prob, of_all.log_prob, 2e-5);
    }
  }
}

TEST(Sampling, OfARowWithSegmentsNeverDrawsATokenWithoutMass) {
  std::vector<float> logits(2000, kImpossible);
  logits[700] = logits[1999] = 1;
  for (const double u : {0.0, 0.25, 0.5, 0.75, 1 - 0x1.0p-53}) {
    const TokenDraw draw = sample_segments(logits, {}, {.drawable = 2000, .uniform = u});
    EXPECT_EQ(draw.token, u < 0.5 ? 700 : 1999);
    EXPECT_NEAR(draw.entropy, std::log(2), 1e-6);
    EXPECT_EQ(sample_segments(logits, {}, {.drawable = 1999, .uniform = u}).token, 700);
  }
}

TEST(Sampling, MatchesTheDefinitionOnRandomRows) {
  RandomStream random(1);
  const SamplingOptions choices[] = {{},
                                     {.temperature = 0.6},
                                     {.top_k = 5},
                                     {.top_p = 0.7},
                                     {.temperature = 1.3, .top_p = 0.9, .top_k = 40},
                                     {.temperature = 0}};
  for (int trial = 0; trial < 600; ++trial) {
    const SamplingOptions& options = choices[trial % 6];
    const std::vector<float> logits =
        random_logits(random, 1 + static_cast<int>(random.below(700)), 0.5 + random.uniform() * 4);
    const double uniform = random.uniform();
    const TokenDraw draw = sample(logits, options, uniform);
    const reference::Draw slow =
        reference::draw({logits.begin(), logits.end()},
                        {.temperature = options.temperature, .top_k = options.top_k, .top_p = options.top_p}, uniform);
    ASSERT_EQ(draw.token, slow.token) << "trial " << trial;
    EXPECT_NEAR(draw.log_prob, slow.log_prob, 2e-5);
    EXPECT_NEAR(draw.entropy, slow.entropy, 2e-5);
    EXPECT_NEAR(draw.logsumexp, slow.logsumexp, 2e-5);
  }
}

TEST(Sampling, DrawsTokensAsOftenAsTheirProbabilitySays) {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.2f)};
  std::vector<int> counts(3);
  for (std::uint64_t i = 0; i < 20000; ++i) ++counts[sample(logits, {}, uniform({.position = i})).token];
  EXPECT_NEAR(counts[0], 10000, 300);
  EXPECT_NEAR(counts[1], 6000, 300);
}

TEST(Sampling, BreaksTiesTowardsTheSmallerId) {
  const std::vector<float> logits = {0, 2, 2, 2};
  EXPECT_EQ(sample(logits, {.temperature = 0}, 0.9).token, 1);
  EXPECT_EQ(sample(logits, {.top_k = 1}, 0.99).token, 1);
  EXPECT_EQ(sample(logits, {.top_k = 2}, 0.99).token, 2);
  EXPECT_EQ(sample(logits, {.top_p = 0.3}, 0.99).token, 1);
}

TEST(Sampling, KeepsTheFullSoftmaxInItsStatisticsWhateverIsCut) {
  const std::vector<float> logits = {1, 0, -1, 3};
  const TokenDraw uncut = sample(logits, {}, 0.999);
  const TokenDraw cut = sample(logits, {.top_k = 1}, 0.999);
  ASSERT_EQ(uncut.token, cut.token);
  EXPECT_EQ(uncut.log_prob, cut.log_prob);
  EXPECT_EQ(uncut.entropy, cut.entropy);
}

TEST(Sampling, NeverDrawsATokenWithoutMass) {
  const std::vector<float> logits = {kImpossible, 1, kImpossible, 1, kImpossible};
  for (double u : {0.0, 0.25, 0.5, 0.75, 1 - 0x1.0p-53}) {
    const TokenDraw draw = sample(logits, {}, u);
    EXPECT_EQ(draw.token, u < 0.5 ? 1 : 3);
    EXPECT_EQ(sample(logits, {.top_k = 4}, u).token, draw.token);
    EXPECT_NEAR(draw.entropy, std::log(2), 1e-6);
  }
}

TEST(Sampling, NeverDrawsAPaddedIdAndStillCountsItsMass) {
  for (const SamplingOptions& options :
       {SamplingOptions{}, SamplingOptions{.top_k = 3}, SamplingOptions{.temperature = 0}}) {
    std::vector<float> logits = {0, 0, 5};
    const TokenDraw draw = sample_token({logits}, options, {.drawable = 2, .uniform = 0.99});
    EXPECT_EQ(draw.token, options.temperature == 0 ? 0 : 1);
    EXPECT_NEAR(draw.logsumexp, std::log(2 + std::exp(5.0)), 1e-5);
  }
}

TEST(Sampling, CandidateEntropySumsTheMostProbableTokensAndTheDrawnOne) {
  const std::vector<float> logits = {std::log(0.1f), std::log(0.4f), std::log(0.2f), std::log(0.3f)};
  const auto entropy_of = [&](double uniform, int candidates) {
    std::vector<float> row = logits;
    return sample_token({row}, {}, {.drawable = 4, .uniform = uniform, .candidates = candidates}).candidate_entropy;
  };
  const auto part = [](double p) { return -p * std::log(p); };
  EXPECT_NEAR(entropy_of(0.3, 2), part(0.4) + part(0.3), 1e-6) << "the drawn token is among them";
  EXPECT_NEAR(entropy_of(0.05, 2), part(0.4) + part(0.3) + part(0.1), 1e-6) << "the drawn token comes on top";
  EXPECT_NEAR(entropy_of(0.05, 4), sample(logits, {}, 0.05).entropy, 1e-6);
}

TEST(Sampling, TheLikeliestTokensAreThoseOfTheSortedRowWithTheDrawsLogProbabilities) {
  RandomStream random(5);
  for (const SamplingOptions& options :
       {SamplingOptions{}, SamplingOptions{.temperature = 0.7, .top_k = 3}, SamplingOptions{.temperature = 0}}) {
    std::vector<float> logits = random_logits(random, 300, 2);
    logits[7] = logits[200];
    const int size = static_cast<int>(logits.size());
    const TokenDraw draw = sample_token({logits}, options, {.drawable = size, .uniform = 0.6});
    std::vector<TokenLogProb> expected;
    for (int id = 0; id < size; ++id) expected.push_back({.token = id, .log_prob = logits[id] - draw.logsumexp});
    std::stable_sort(expected.begin(), expected.end(),
                     [](const TokenLogProb& a, const TokenLogProb& b) { return a.log_prob > b.log_prob; });
    EXPECT_EQ(likeliest_tokens(logits, draw.logsumexp, size + 5), expected);
    expected.resize(20);
    EXPECT_EQ(likeliest_tokens(logits, draw.logsumexp, 20), expected);
    const auto place = std::find_if(expected.begin(), expected.end(),
                                    [&](const TokenLogProb& one) { return one.token == draw.token; });
    if (place != expected.end()) {
      EXPECT_EQ(place->log_prob, draw.log_prob);
    }
    EXPECT_TRUE(likeliest_tokens(logits, draw.logsumexp, 0).empty());
  }
}

TEST(Sampling, HoldsTheEntropyOfAnAlmostCertainToken) {
  const std::vector<float> logits = {100, 90};
  const TokenDraw draw = sample(logits, {}, 0.5);
  EXPECT_NEAR(draw.entropy / (11 * std::exp(-10.0)), 1, 1e-3)
      << "the difference of two sums of size 100 would be noise";
}

TEST(Sampling, RefusesARowWithoutAFiniteLogit) {
  const std::vector<float> nothing = {-std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()};
  EXPECT_THROW(sample(nothing, {}, 0.5), CheckError);
  const std::vector<float> broken = {std::numeric_limits<float>::quiet_NaN()};
  EXPECT_THROW(sample(broken, {}, 0.5), CheckError);
}

}  // namespace
}  // namespace carnot
