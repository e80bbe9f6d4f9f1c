#include "carnot/core/nn/token_statistics.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>

#include "carnot/core/base/random.h"
#include "carnot/core/base/thread_pool.h"
#include "reference/clamped_entropy.h"

namespace carnot {
namespace {

at::Tensor random_matrix(RandomStream& stream, std::int64_t rows, std::int64_t columns, double scale = 1) {
  at::Tensor x = at::empty({rows, columns}, at::kDouble);
  for (std::int64_t i = 0; i < x.numel(); ++i) x.data_ptr<double>()[i] = scale * stream.normal();
  return x;
}

/// Peak resident memory of the process so far, in bytes.
std::int64_t peak_memory() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    if (word != "VmHWM:") continue;
    std::int64_t kilobytes = 0;
    status >> kilobytes;
    return kilobytes * 1024;
  }
  return 0;
}

TEST(TokenStatistics, NeverHoldTokensTimesVocabulary) {
  constexpr std::int64_t kTokens = 4096, kVocabulary = 20000, kHidden = 16;
  const at::Tensor hidden = at::randn({kTokens, kHidden}).set_requires_grad(true);
  const at::Tensor head = at::randn({kVocabulary, kHidden}).set_requires_grad(true);
  const at::Tensor targets = at::zeros({kTokens}, at::kLong);
  const std::int64_t before = peak_memory();
  const auto statistics = token_statistics(hidden, head, targets, {.entropy_clamp = 0.4});
  (statistics.entropy_T + statistics.clamped_entropy_T - statistics.logprob_T).sum().backward();
  // The whole matrix of logits would take 328 MB; a strip takes 17.
  EXPECT_LT(peak_memory() - before, 100 << 20);
}

class TokenStatisticsOn : public ::testing::TestWithParam<KernelChoice> {
 protected:
  /// Statistics of rows of logits: their product with the identity.
  TokenStatistics of_logits(const at::Tensor& logits, double entropy_clamp, double temperature = 1) const {
    return token_statistics(logits, at::eye(logits.size(1), logits.options().requires_grad(false)),
                            at::zeros({logits.size(0)}, at::kLong),
                            {.temperature = temperature, .entropy_clamp = entropy_clamp, .kernels = GetParam()});
  }
};
INSTANTIATE_TEST_SUITE_P(Kernels, TokenStatisticsOn, ::testing::Values(KernelChoice::Own, KernelChoice::Portable),
                         [](const auto& kernels) { return kernels.param == KernelChoice::Own ? "Own" : "Portable"; });

TEST_P(TokenStatisticsOn, GradientOfEachOutputMatchesFiniteDifferences) {
  RandomStream stream(2);
  at::Tensor hidden = random_matrix(stream, 5, 6), head = random_matrix(stream, 11, 6);
  const at::Tensor targets = at::tensor(std::vector<std::int64_t>{0, 10, 3, 3, 7}, at::kLong);
  const at::Tensor mix = random_matrix(stream, 4, 5);
  const auto loss = [&] {
    const auto s =
        token_statistics(hidden, head, targets, {.temperature = 0.6, .entropy_clamp = 0.45, .kernels = GetParam()});
    return (s.logprob_T * mix[0] + s.entropy_T * mix[1] + s.logsumexp_T * mix[2] + s.clamped_entropy_T * mix[3]).sum();
  };
  hidden.set_requires_grad(true);
  head.set_requires_grad(true);
  loss().backward();
  const at::NoGradGuard no_grad;
  for (const at::Tensor& x : {hidden, head}) {
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      double& at = x.data_ptr<double>()[i];
      const double keep = at;
      at = keep + 1e-6;
      const double up = loss().item<double>();
      at = keep - 1e-6;
      const double down = loss().item<double>();
      at = keep;
      EXPECT_NEAR(x.grad().data_ptr<double>()[i], (up - down) / 2e-6, 1e-6);
    }
  }
}

TEST_P(TokenStatisticsOn, ClampedEntropyEqualsItsSlowReference) {
  RandomStream stream(3);
  // Every row also has an entry of 0.5.
  const std::vector<std::function<double(double)>> shapes = {
      [](double x) { return 2 * x; },                    // plain
      [](double x) { return std::round(x); },            // ties everywhere
      [](double x) { return 100 * std::round(2 * x); },  // all but one probability vanish
      [](double x) { return x > 1 ? 0 : -1e30; },        // banned entries, fewer and more than the removed ones
      [](double) { return 7.0; },                        // one value
      [](double x) { return 1e-300 * x; }};
  for (const auto& shape : shapes)
    for (std::int64_t vocabulary : {2, 17, 70})
      for (double share : {0.2, 0.5, 0.96}) {
        const at::Tensor logits = random_matrix(stream, 9, vocabulary);
        for (std::int64_t i = 0; i < logits.numel(); ++i)
          logits.data_ptr<double>()[i] = shape(logits.data_ptr<double>()[i]);
        for (std::int64_t t = 0; t < 9; ++t) logits[t][t % vocabulary] = 0.5;
        logits.set_requires_grad(true);
        const at::Tensor entropy_T = of_logits(logits, share).clamped_entropy_T;
        const at::Tensor mix_T = random_matrix(stream, 1, 9)[0];
        (entropy_T * mix_T).sum().backward();
        for (std::int64_t t = 0; t < 9; ++t) {
          const auto slow = reference::clamped_entropy(
              {logits.data_ptr<double>() + t * vocabulary, static_cast<std::size_t>(vocabulary)},
              clamped_entries(share, vocabulary));
          EXPECT_NEAR(entropy_T[t].item<double>(), slow.entropy, 1e-12);
          for (std::int64_t v = 0; v < vocabulary; ++v)
            EXPECT_NEAR(logits.grad()[t][v].item<double>(), mix_T[t].item<double>() * slow.by_logit[v], 1e-12);
        }
      }
}

TEST_P(TokenStatisticsOn, ClampedEntropyGivesThePublishedVector) {
  const at::Tensor logits = at::tensor(std::vector<double>{2, 1, 0, -1, -3}, at::kDouble).unsqueeze(0);
  const TokenStatistics statistics = of_logits(logits, 0.4);
  EXPECT_NEAR(statistics.clamped_entropy_T.item<double>(), 0.8323956, 5e-8);
  EXPECT_NEAR(statistics.entropy_T.item<double>(), 0.9712741, 5e-8);
  // The temperature is applied first.
  EXPECT_NEAR(of_logits(2 * logits, 0.4, 2).clamped_entropy_T.item<double>(), 0.8323956, 5e-8);
}

TEST_P(TokenStatisticsOn, WithoutAClampThereIsNoClampedEntropyAndAClampOfNoEntryIsTheWholeSoftmax) {
  RandomStream stream(4);
  const at::Tensor logits = random_matrix(stream, 3, 20);
  EXPECT_FALSE(of_logits(logits, 0).clamped_entropy_T.defined());
  const TokenStatistics statistics = of_logits(logits, 0.04);
  EXPECT_TRUE(at::equal(statistics.clamped_entropy_T, statistics.entropy_T));
}

TEST(ClampedEntropy, HasTheSameBitsWhateverRowsAndThreadsItIsComputedWith) {
  RandomStream stream(5);
  for (at::ScalarType type : {at::kFloat, at::kDouble}) {
    const at::Tensor hidden = random_matrix(stream, 300, 8).to(type), head = random_matrix(stream, 200, 8).to(type);
    const at::Tensor targets = at::zeros({300}, at::kLong);
    const auto entropies = [&](std::int64_t first, std::int64_t rows) {
      return token_statistics(hidden.narrow(0, first, rows), head, targets.narrow(0, first, rows),
                              {.entropy_clamp = 0.3})
          .clamped_entropy_T;
    };
    const at::Tensor together = entropies(0, 300);
    set_num_threads(3);
    EXPECT_TRUE(at::equal(entropies(0, 300), together));
    set_num_threads(1);
    for (std::int64_t t : {0, 13, 256, 299}) EXPECT_TRUE(at::equal(entropies(t, 1), together.narrow(0, t, 1)));
  }
}

TEST(ClampedEntropy, ShowsWhatIsNotANumber) {
  at::Tensor logits = at::zeros({1, 40}, at::kFloat);
  logits[0][25] = std::nan("");
  const auto statistics =
      token_statistics(logits, at::eye(40, at::kFloat), at::zeros({1}, at::kLong), {.entropy_clamp = 0.3});
  EXPECT_TRUE(std::isnan(statistics.clamped_entropy_T.item<float>()));
}

/// Forward and backward of the same inputs, with or without a head that is kept packed.
struct WithGradients {
  TokenStatistics statistics{};
  at::Tensor of_hidden{}, of_head{};
};
WithGradients with_gradients(const at::Tensor& hidden_TH, const at::Tensor& head_VH, PackedWeights* packed) {
  const at::Tensor hidden = hidden_TH.detach().clone().set_requires_grad(true);
  head_VH.mutable_grad().reset();
  const at::Tensor targets = at::arange(hidden.size(0), at::kLong);
  WithGradients out{token_statistics(hidden, head_VH, targets, {.entropy_clamp = 0.3, .packed = packed})};
  const TokenStatistics& s = out.statistics;
  (s.entropy_T * 0.1 + s.clamped_entropy_T * 0.2 - s.logprob_T + s.logsumexp_T * 0.01).sum().backward();
  out.of_hidden = hidden.grad();
  out.of_head = head_VH.grad().clone();
  return out;
}

TEST(TokenStatistics, OfAHeadThatIsKeptPackedHaveTheBitsOfOneThatIsPackedForTheCall) {
  constexpr std::int64_t kTokens = 70, kVocabulary = 4999, kHidden = 48;  // partial strips and panels
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    const at::Tensor hidden = at::randn({kTokens, kHidden}).to(type);
    const at::Tensor head = at::randn({kVocabulary, kHidden}).to(type).set_requires_grad(true);
    if (type == at::kBFloat16) head.set_grad_dtype(at::kFloat);
    PackedWeights packed;
    for (int change = 0; change < 3; ++change) {
      const WithGradients kept = with_gradients(hidden, head, &packed), fresh = with_gradients(hidden, head, nullptr);
      for (const auto member : {&TokenStatistics::logprob_T, &TokenStatistics::entropy_T, &TokenStatistics::logsumexp_T,
                                &TokenStatistics::clamped_entropy_T})
        EXPECT_TRUE((kept.statistics.*member).equal(fresh.statistics.*member)) << type;
      EXPECT_TRUE(kept.of_hidden.equal(fresh.of_hidden)) << type;
      EXPECT_TRUE(kept.of_head.equal(fresh.of_head)) << type;
      const at::NoGradGuard no_grad;
      if (change == 1) head.mul_(1.5);  // packed again
    }
  }
}

}  // namespace
}  // namespace carnot
