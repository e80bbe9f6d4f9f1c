// The text of statistics.cu, compiled for the processor, against its slow reference.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "carnot/core/base/random.h"
#include "carnot/core/kernel/bfloat16.h"
#include "reference/token_statistics.h"
#include "testing/emulated_statistics.h"
#include "testing/trials.h"

namespace carnot::cuda {
namespace {

using testing::emulated_statistics, testing::ThreadOrder;

/// Rows of logits with targets and factors, and what the kernels write.
template <class T>
struct StatisticsCase {
  StatisticsCase(Index rows_of_logits, Index columns, Index removed_entries, double temperature_of_logits)
      : rows(rows_of_logits),
        vocabulary(columns),
        removed(removed_entries),
        temperature(temperature_of_logits),
        logits(static_cast<std::size_t>(rows * vocabulary)),
        targets(static_cast<std::size_t>(rows)),
        tie_limit(targets.size(), -1) {
    for (std::vector<T>* numbers : {&logprob, &entropy, &logsumexp, &clamped_entropy, &kept_logsumexp, &threshold,
                                    &g_logprob, &g_entropy, &g_logsumexp, &g_clamped_entropy})
      numbers->assign(targets.size(), std::numeric_limits<T>::quiet_NaN());
  }

  void fill(RandomStream& random, const std::function<double(double)>& shape) {
    for (T& x : logits) x = static_cast<T>(shape(random.normal()));
    // An entry that every softmax can hold on to.
    for (Index r = 0; r < rows; ++r) logits[static_cast<std::size_t>(r * vocabulary + r % vocabulary)] = T(0.5);
    for (Index& target : targets) target = static_cast<Index>(random.below(static_cast<std::uint64_t>(vocabulary)));
    for (std::vector<T>* factors : {&g_logprob, &g_entropy, &g_logsumexp, &g_clamped_entropy})
      for (T& x : *factors) x = static_cast<T>(random.normal());
  }

  StatisticsForward<T> forward() {
    return {.logits = logits.data(),
            .rows = rows,
            .vocabulary = vocabulary,
            .inverse_temperature = static_cast<T>(1 / temperature),
            .targets = targets.data(),
            .logprob = logprob.data(),
            .entropy = entropy.data(),
            .logsumexp = logsumexp.data(),
            .removed = removed,
            .clamped_entropy = clamped_entropy.data(),
            .kept_logsumexp = kept_logsumexp.data(),
            .threshold = threshold.data(),
            .tie_limit = tie_limit.data()};
  }

  template <class S>
  StatisticsBackward<T, S> backward(S* of_logits) {
    return {.logits = logits.data(),
            .rows = rows,
            .vocabulary = vocabulary,
            .inverse_temperature = static_cast<T>(1 / temperature),
            .targets = targets.data(),
            .entropy = entropy.data(),
            .logsumexp = logsumexp.data(),
            .g_logprob = g_logprob.data(),
            .g_entropy = g_entropy.data(),
            .g_logsumexp = g_logsumexp.data(),
            .removed = removed,
            .clamped_entropy = clamped_entropy.data(),
            .kept_logsumexp = kept_logsumexp.data(),
            .threshold = threshold.data(),
            .g_clamped_entropy = g_clamped_entropy.data(),
            .tie_limit = tie_limit.data(),
            .of_logits = of_logits};
  }

  std::vector<double> row(Index r) const {
    const auto begin = logits.begin() + r * vocabulary;
    return {begin, begin + vocabulary};
  }
  std::size_t target(Index r) const { return static_cast<std::size_t>(targets[static_cast<std::size_t>(r)]); }
  reference::RowStatistics slow(Index r) const {
    return reference::row_statistics(row(r), temperature, target(r), static_cast<std::size_t>(removed));
  }
  std::vector<double> slow_gradient(Index r) const {
    const auto i = static_cast<std::size_t>(r);
    return reference::row_statistics_gradient(row(r), temperature, target(r), static_cast<std::size_t>(removed),
                                              {.logprob = g_logprob[i],
                                               .entropy = g_entropy[i],
                                               .logsumexp = g_logsumexp[i],
                                               .clamped_entropy = removed > 0 ? double(g_clamped_entropy[i]) : 0});
  }

  Index rows, vocabulary, removed;
  double temperature;
  std::vector<T> logits;
  std::vector<Index> targets, tie_limit;
  std::vector<T> logprob, entropy, logsumexp, clamped_entropy, kept_logsumexp, threshold;
  std::vector<T> g_logprob, g_entropy, g_logsumexp, g_clamped_entropy;
};

/// Bounds of the error, for numbers around one: of a statistic, and of a gradient.
template <class T>
constexpr double kTolerance = sizeof(T) == 8 ? 1e-12 : 2e-5;

template <class T>
void expect_near(double found, double expected, const char* what) {
  EXPECT_NEAR(found, expected, kTolerance<T> * (1 + std::abs(expected))) << what;
}

template <class T>
void expect_like_the_reference(StatisticsCase<T>& given) {
  const auto kernels = emulated_statistics(ThreadOrder::Shuffled);
  kernels->forward(given.forward());
  std::vector<T> gradient(given.logits.size());
  kernels->backward(given.backward(gradient.data()));
  for (Index r = 0; r < given.rows; ++r) {
    const auto i = static_cast<std::size_t>(r);
    const auto slow = given.slow(r);
    expect_near<T>(given.logprob[i], slow.logprob, "log-probability");
    expect_near<T>(given.entropy[i], slow.entropy, "entropy");
    expect_near<T>(given.logsumexp[i], slow.logsumexp, "logsumexp");
    if (given.removed > 0) expect_near<T>(given.clamped_entropy[i], slow.clamped_entropy, "clamped entropy");
    const auto slow_gradient = given.slow_gradient(r);
    for (Index v = 0; v < given.vocabulary; ++v)
      expect_near<T>(gradient[static_cast<std::size_t>(r * given.vocabulary + v)],
                     slow_gradient[static_cast<std::size_t>(v)], "gradient");
  }
}

const std::vector<std::pair<const char*, std::function<double(double)>>>& shapes() {
  static const std::vector<std::pair<const char*, std::function<double(double)>>> all{
      {"plain", [](double x) { return 2 * x; }},
      {"ties everywhere", [](double x) { return std::round(x); }},
      {"both zeros", [](double x) { return x > 0 ? 0.0 : -0.0; }},
      {"all but a few probabilities vanish", [](double x) { return 30 * std::round(2 * x); }},
      {"banned entries", [](double x) { return x > 1 ? 0 : -1e30; }},
      {"one value", [](double) { return 0.5; }},
      {"denormal numbers", [](double x) { return 1e-40 * x; }}};
  return all;
}

template <class T>
void try_every_shape() {
  RandomStream random(3);
  for (const auto& [name, shape] : shapes())
    for (const Index vocabulary : {1, 2, 31, 33, 70, 259})
      for (const double share : {0.0, 0.2, 0.5, 0.97}) {
        SCOPED_TRACE(std::string(name) + ", vocabulary " + std::to_string(vocabulary) + ", removed " +
                     std::to_string(share));
        const auto removed = static_cast<Index>(share * static_cast<double>(vocabulary));
        StatisticsCase<T> given(3, vocabulary, std::min(removed, vocabulary - 1), share == 0.2 ? 0.6 : 1);
        given.fill(random, shape);
        expect_like_the_reference(given);
      }
}

TEST(DeviceStatistics, EqualTheirSlowReferenceInDouble) { try_every_shape<double>(); }
TEST(DeviceStatistics, EqualTheirSlowReferenceInFloat) { try_every_shape<float>(); }

TEST(DeviceStatistics, EntriesOfMinusInfinityHaveNoProbabilityAndNoGradient) {
  RandomStream random(4);
  StatisticsCase<float> given(3, 70, 0, 1);
  given.fill(random, [](double x) { return x > 0 ? x : -std::numeric_limits<double>::infinity(); });
  given.targets = {0, 1, 2};  // fill() gives these a finite logit
  expect_like_the_reference(given);
}

TEST(DeviceStatistics, ShowWhatIsNotANumber) {
  for (const Index removed : {0, 30}) {
    StatisticsCase<float> given(1, 70, removed, 1);
    RandomStream random(5);
    given.fill(random, [](double x) { return x; });
    given.logits[41] = std::nanf("");
    emulated_statistics(ThreadOrder::Ascending)->forward(given.forward());
    EXPECT_TRUE(std::isnan(given.logsumexp[0]));
    EXPECT_TRUE(std::isnan(given.entropy[0]));
    EXPECT_EQ(std::isnan(given.clamped_entropy[0]), true) << "where nothing is removed, nothing is written";
  }
}

/// All that both passes write, as bytes.
template <class T>
std::string written_by(StatisticsCase<T> given, ThreadOrder order) {
  const auto kernels = emulated_statistics(order);
  kernels->forward(given.forward());
  std::vector<T> gradient(given.logits.size());
  kernels->backward(given.backward(gradient.data()));
  std::string bytes;
  for (const std::vector<T>* numbers : {&given.logprob, &given.entropy, &given.logsumexp, &given.clamped_entropy,
                                        &given.kept_logsumexp, &given.threshold, &gradient})
    bytes.append(reinterpret_cast<const char*>(numbers->data()), numbers->size() * sizeof(T));
  bytes.append(reinterpret_cast<const char*>(given.tie_limit.data()), given.tie_limit.size() * sizeof(Index));
  return bytes;
}

TEST(DeviceStatistics, DoNotDependOnTheOrderOfThreads) {
  RandomStream random(6);
  for (const auto& [name, shape] : shapes()) {
    StatisticsCase<float> given(4, 301, 100, 0.8);
    given.fill(random, shape);
    const std::string ascending = written_by(given, ThreadOrder::Ascending);
    EXPECT_EQ(written_by(given, ThreadOrder::Descending), ascending) << name;
    EXPECT_EQ(written_by(given, ThreadOrder::Shuffled), ascending) << name;
  }
}

TEST(DeviceStatistics, OfARowHaveTheSameBitsWhateverTheOtherRows) {
  RandomStream random(7);
  StatisticsCase<float> all(5, 97, 20, 1);
  all.fill(random, [](double x) { return std::round(4 * x) / 2; });
  const auto kernels = emulated_statistics(ThreadOrder::Ascending);
  kernels->forward(all.forward());
  for (Index r = 0; r < all.rows; ++r) {
    StatisticsCase<float> alone(1, 97, 20, 1);
    const auto i = static_cast<std::size_t>(r);
    std::copy_n(all.logits.begin() + r * 97, 97, alone.logits.begin());
    alone.targets[0] = all.targets[i];
    kernels->forward(alone.forward());
    EXPECT_EQ(alone.logprob[0], all.logprob[i]);
    EXPECT_EQ(alone.entropy[0], all.entropy[i]);
    EXPECT_EQ(alone.logsumexp[0], all.logsumexp[i]);
    EXPECT_EQ(alone.clamped_entropy[0], all.clamped_entropy[i]);
    EXPECT_EQ(alone.tie_limit[0], all.tie_limit[i]);
  }
}

TEST(DeviceStatistics, GradientsInBfloat16AreThoseOfFloatRounded) {
  RandomStream random(8);
  StatisticsCase<float> given(4, 133, 40, 1);
  given.fill(random, [](double x) { return 3 * x; });
  given.g_logprob[2] = std::nanf("");
  const auto kernels = emulated_statistics(ThreadOrder::Ascending);
  kernels->forward(given.forward());
  std::vector<float> wide(given.logits.size());
  std::vector<unsigned short> narrow(given.logits.size());
  kernels->backward(given.backward(wide.data()));
  kernels->backward(given.backward(narrow.data()));
  for (std::size_t i = 0; i < wide.size(); ++i) {
    if (std::isnan(wide[i]))
      EXPECT_EQ(narrow[i], 0x7FC0);
    else
      EXPECT_EQ(narrow[i], kernel::rounded(wide[i]).bits) << wide[i];
  }
}

TEST(DeviceStatistics, MayWriteTheGradientOverTheLogits) {
  RandomStream random(9);
  StatisticsCase<double> given(3, 71, 30, 1);
  given.fill(random, [](double x) { return x; });
  const auto kernels = emulated_statistics(ThreadOrder::Descending);
  kernels->forward(given.forward());
  std::vector<double> apart(given.logits.size());
  kernels->backward(given.backward(apart.data()));
  kernels->backward(given.backward(given.logits.data()));
  EXPECT_EQ(given.logits, apart);
}

TEST(DeviceStatistics, RunWithAsManyThreadsAsOnAGpu) {
  RandomStream random(10);
  for (const Index vocabulary : {70, 1003}) {
    StatisticsCase<float> given(2, vocabulary, vocabulary / 3, 1);
    given.fill(random, [](double x) { return std::round(3 * x) / 3; });
    testing::emulate_full_block(ThreadOrder::Shuffled, given.forward());
    for (Index r = 0; r < given.rows; ++r) {
      const auto i = static_cast<std::size_t>(r);
      const auto slow = given.slow(r);
      expect_near<float>(given.logprob[i], slow.logprob, "log-probability");
      expect_near<float>(given.entropy[i], slow.entropy, "entropy");
      expect_near<float>(given.clamped_entropy[i], slow.clamped_entropy, "clamped entropy");
    }
  }
}

TEST(DeviceEmulation, FindsThreadsThatDoNotMeetAtABarrier) {
  const auto launch = [](const std::function<void()>& kernel) {
    testing::emulate_launch(1, 4, ThreadOrder::Ascending, kernel);
  };
  EXPECT_NO_THROW(launch([] { __syncthreads(); }));
  EXPECT_THROW(launch([] {
                 if (threadIdx.x < 2) __syncthreads();
               }),
               CheckError);
  EXPECT_THROW(launch([] {
                 if (threadIdx.x < 2)
                   __syncthreads();
                 else
                   testing::emulated_barrier(-1);
               }),
               CheckError);
}

TEST(DeviceEmulation, ShowsAMissingBarrierByTheOrderOfThreads) {
  static int shared[4];
  const auto sum_of_neighbours = [](ThreadOrder order, bool with_barrier) {
    std::vector<int> sums(4);
    std::fill(std::begin(shared), std::end(shared), 0);
    testing::emulate_launch(1, 4, order, [&] {
      const unsigned thread = threadIdx.x;
      shared[thread] = static_cast<int>(thread);
      if (with_barrier) __syncthreads();
      sums[thread] = shared[thread] + shared[(thread + 1) % 4];
    });
    return sums;
  };
  EXPECT_EQ(sum_of_neighbours(ThreadOrder::Ascending, true), sum_of_neighbours(ThreadOrder::Descending, true));
  EXPECT_NE(sum_of_neighbours(ThreadOrder::Ascending, false), sum_of_neighbours(ThreadOrder::Descending, false));
}

}  // namespace
}  // namespace carnot::cuda
