#include "carnot/core/kernel/dispatch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "carnot/core/base/random.h"

namespace carnot::kernel {
namespace {

template <class T>
class InnerLoops : public ::testing::Test {
 protected:
  std::vector<T> normal(std::size_t count, double scale = 1) {
    std::vector<T> values(count);
    for (T& value : values) value = static_cast<T>(scale * stream_.normal());
    return values;
  }
  static constexpr double kTolerance = sizeof(T) == 4 ? 2e-6 : 1e-13;

  RandomStream stream_{11};
};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(InnerLoops, Scalars);

TYPED_TEST(InnerLoops, RowStatisticsMatchTheDefinitions) {
  using T = TypeParam;
  for (std::int64_t n : {1, 2, 15, 16, 17, 515, 1000}) {
    for (double temperature : {1.0, 0.5}) {
      auto z = this->normal(n, 5);
      std::vector<double> scaled;
      double total = 0, entropy = 0;
      for (T x : z) scaled.push_back(double(x) / temperature);
      double highest = *std::max_element(scaled.begin(), scaled.end());
      for (double x : scaled) total += std::exp(x - highest);
      const double logsumexp = highest + std::log(total);
      for (double x : scaled) entropy -= std::exp(x - logsumexp) * (x - logsumexp);
      T got_logsumexp, got_entropy;
      kernel_table<T>().row_statistics(n, T(1 / temperature), z.data(), &got_logsumexp, &got_entropy);
      EXPECT_NEAR(got_logsumexp, logsumexp, this->kTolerance * 20) << n;
      EXPECT_NEAR(got_entropy, entropy, this->kTolerance * 10) << n;
    }
  }
}

TYPED_TEST(InnerLoops, EntropyOfAPeakedRowDoesNotCancel) {
  using T = TypeParam;
  std::vector<T> z(100, T(0));
  z[7] = 30;
  T logsumexp, entropy;
  kernel_table<T>().row_statistics(100, T(1), z.data(), &logsumexp, &entropy);
  const double tail = 99 * std::exp(-30.0);
  // log(1 + tail) is 0 in single precision; the larger part, 30 * tail, must survive.
  EXPECT_NEAR(entropy / (tail * 31), 1.0, sizeof(T) == 4 ? 0.04 : 1e-3);
}

TYPED_TEST(InnerLoops, SwigluAndItsGradientMatchTheDefinitions) {
  using T = TypeParam;
  for (std::size_t n : {1u, 16u, 37u}) {
    const auto gate = this->normal(n, 3), up = this->normal(n), dout = this->normal(n);
    std::vector<T> out(n), dgate(n), dup(n);
    storage_table<T>().swiglu(static_cast<std::int64_t>(n), gate.data(), up.data(), out.data());
    storage_table<T>().swiglu_backward(static_cast<std::int64_t>(n), dout.data(), gate.data(), up.data(), dgate.data(),
                                       dup.data());
    for (std::size_t i = 0; i < n; ++i) {
      const double g = gate[i], s = 1 / (1 + std::exp(-g));
      EXPECT_NEAR(out[i], g * s * up[i], this->kTolerance * 10);
      EXPECT_NEAR(dup[i], dout[i] * g * s, this->kTolerance * 10);
      EXPECT_NEAR(dgate[i], dout[i] * up[i] * (s + g * s * (1 - s)), this->kTolerance * 10);
    }
  }
}

TYPED_TEST(InnerLoops, GegluAndItsGradientMatchTheDefinitions) {
  using T = TypeParam;
  const auto gelu = [](double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
  };
  for (std::size_t n : {1u, 16u, 37u}) {
    const auto gate = this->normal(n, 3), up = this->normal(n), dout = this->normal(n);
    std::vector<T> out(n), dgate(n), dup(n);
    storage_table<T>().geglu(static_cast<std::int64_t>(n), gate.data(), up.data(), out.data());
    storage_table<T>().geglu_backward(static_cast<std::int64_t>(n), dout.data(), gate.data(), up.data(), dgate.data(),
                                      dup.data());
    for (std::size_t i = 0; i < n; ++i) {
      const double g = gate[i];
      EXPECT_NEAR(out[i], gelu(g) * up[i], this->kTolerance * 10);
      EXPECT_NEAR(dup[i], dout[i] * gelu(g), this->kTolerance * 10);
      EXPECT_NEAR(dgate[i], dout[i] * up[i] * (gelu(g + 1e-5) - gelu(g - 1e-5)) / 2e-5, this->kTolerance * 10 + 1e-9);
    }
  }
}

TYPED_TEST(InnerLoops, RmsNormsGradientMatchesFiniteDifferences) {
  using T = TypeParam;
  const std::int64_t n = 19;
  const T offset = 1;
  const auto x = this->normal(19), weight = this->normal(19), dy = this->normal(19);
  const auto loss = [&](std::vector<double> v) {
    double squares = 0, sum = 0;
    for (double a : v) squares += a * a;
    const double factor = 1 / std::sqrt(squares / double(n) + 1e-6);
    for (std::size_t i = 0; i < v.size(); ++i) sum += v[i] * factor * (weight[i] + offset) * dy[i];
    return sum;
  };
  std::vector<T> y(19), dx(19), dweight(19, T(0));
  const T factor = storage_table<T>().rms_norm(n, x.data(), weight.data(), offset, T(1e-6), y.data());
  storage_table<T>().rms_norm_backward(n, dy.data(), x.data(), weight.data(), offset, factor, dx.data(),
                                       dweight.data());
  for (std::size_t i = 0; i < 19; ++i) {
    std::vector<double> up(x.begin(), x.end()), down(up);
    up[i] += 1e-5;
    down[i] -= 1e-5;
    EXPECT_NEAR(dx[i], (loss(up) - loss(down)) / 2e-5, 1e-5);
    EXPECT_NEAR(dweight[i], dy[i] * x[i] * factor, 1e-5);
  }
}

TYPED_TEST(InnerLoops, SoftmaxIgnoresWhatStandsBehindItsCount) {
  using T = TypeParam;
  for (int count : {1, 5, 16, 17, 40}) {
    auto scores = this->normal(48);
    for (int j = count; j < 48; ++j) scores[j] = std::numeric_limits<T>::quiet_NaN();
    std::vector<double> before(scores.begin(), scores.begin() + count);
    const double logsumexp = kernel_table<T>().softmax(scores.data(), count);
    double total = 0;
    for (double x : before) total += std::exp(x);
    EXPECT_NEAR(logsumexp, std::log(total), this->kTolerance * 10);
    for (int j = 0; j < count; ++j) EXPECT_NEAR(scores[j], std::exp(before[j]) / total, this->kTolerance);
    for (int j = count; j < (count + 15) / 16 * 16; ++j) EXPECT_EQ(scores[j], T(0));
  }
}

TYPED_TEST(InnerLoops, ARowToDrawFromHasTheBitsOfItsStatisticsAndOfSoftmax) {
  using T = TypeParam;
  const KernelTable<T>& kernels = kernel_table<T>();
  for (std::int64_t n : {1, 2, 15, 16, 17, 48, 515, 1000}) {
    for (std::int64_t drawable : {std::int64_t{1}, n / 3 + 1, n - n / 7, n}) {
      for (const bool largest_is_behind : {false, true}) {
        const T inverse_temperature = n % 2 == 0 ? T(1) : T(1.7);
        auto z = this->normal(static_cast<std::size_t>(n), 3);
        if (largest_is_behind) z.back() = 20;
        auto plain = z;
        T logsumexp, entropy, plain_logsumexp, plain_entropy, factor;
        std::vector<T> exponentials(static_cast<std::size_t>(drawable));
        kernels.row_draw(n, drawable, inverse_temperature, z.data(), &logsumexp, &entropy, exponentials.data(),
                         &factor);
        kernels.row_statistics(n, inverse_temperature, plain.data(), &plain_logsumexp, &plain_entropy);
        EXPECT_EQ(z, plain);
        EXPECT_EQ(logsumexp, plain_logsumexp) << n << ' ' << drawable;
        EXPECT_EQ(entropy, plain_entropy) << n << ' ' << drawable;
        plain.resize(static_cast<std::size_t>((drawable + kTile - 1) / kTile * kTile));
        kernels.softmax(plain.data(), static_cast<int>(drawable));
        for (std::size_t i = 0; i < exponentials.size(); ++i)
          ASSERT_EQ(exponentials[i] * factor, plain[i]) << n << ' ' << drawable << " at " << i;
      }
    }
  }
}

TEST(Draw, SumsOfStripsAddInTheirOrder) {
  RandomStream random(12);
  for (const auto& [n, strip] : {std::pair{1, 1}, {7, 3}, {100, 100}, {1000, 4}, {999, 13}, {5003, 594}}) {
    std::vector<float> x(static_cast<std::size_t>(n));
    for (float& value : x) value = static_cast<float>(random.normal());
    const float factor = 0.37F;
    std::vector<double> got(static_cast<std::size_t>((n + strip - 1) / strip));
    kernel_table<float>().strip_sums(n, strip, factor, x.data(), got.data());
    for (std::size_t s = 0; s < got.size(); ++s) {
      const int begin = static_cast<int>(s) * strip, size = std::min(strip, n - begin);
      double lanes[4] = {};
      for (int i = 0; i < size; ++i) {
        const float product = x[static_cast<std::size_t>(begin + i)] * factor;
        lanes[i < size / 4 * 4 ? i % 4 : 0] += static_cast<double>(product);
      }
      ASSERT_EQ(got[s], (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) << n << ' ' << strip << " at " << s;
    }
  }
}

TEST(Exponential, IsAccurateOverItsWholeRange) {
  // Through a two-element softmax: p / (1 - p) = exp(difference).
  for (double difference = -80; difference <= 0; difference += 0.37) {
    std::vector<float> scores(16, 0.0f);
    scores[0] = static_cast<float>(difference);
    kernel_table<float>().softmax(scores.data(), 2);
    const double expected = std::exp(double(static_cast<float>(difference)));
    EXPECT_NEAR(scores[0] / scores[1] / expected, 1.0, 1e-6) << difference;
  }
}

TEST(InnerLoops, KeepNotANumberVisible) {
  std::vector<float> z(33, 0.0f);
  z[20] = std::numeric_limits<float>::quiet_NaN();
  float logsumexp, entropy;
  kernel_table<float>().row_statistics(33, 1.0f, z.data(), &logsumexp, &entropy);
  EXPECT_TRUE(std::isnan(logsumexp));
}

}  // namespace
}  // namespace carnot::kernel
