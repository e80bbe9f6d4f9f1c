// Loops over rows stored as bfloat16, compared with their definitions in float64 and with each other.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "carnot/core/base/random.h"
#include "carnot/core/kernel/dispatch.h"

namespace carnot::kernel {
namespace {

constexpr int kWidths[] = {1, 7, 16, 37, 64, 101};

class StoredRows : public ::testing::Test {
 protected:
  std::vector<BFloat16> normal(std::size_t count, double scale = 1) {
    std::vector<BFloat16> values;
    for (std::size_t i = 0; i < count; ++i) values.push_back(rounded(static_cast<float>(scale * stream_.normal())));
    return values;
  }
  static const StorageTable<BFloat16>& rows() { return storage_table<BFloat16>(); }

  RandomStream stream_{31};
};

double wide(BFloat16 x) { return static_cast<double>(widened(x)); }

/// `got` is `exact` rounded once: the error is at most half of the last of eight bits, plus that of float32 arithmetic.
void expect_rounded(BFloat16 got, double exact, int n) {
  EXPECT_NEAR(wide(got), exact, std::abs(exact) * (0x1p-8 + 2e-6) + 1e-6) << "of " << n;
}

TEST_F(StoredRows, AreRoundedAndWidenedAsSingleNumbersAre) {
  for (int n : kWidths) {
    std::vector<float> x(n);
    for (float& value : x) value = static_cast<float>(stream_.normal());
    x[n / 2] = std::numeric_limits<float>::quiet_NaN();
    x[n / 3] = 3.4e38F;  // rounds to infinity
    std::vector<BFloat16> y(n);
    rows().round(n, x.data(), y.data());
    std::vector<float> back(n);
    rows().widen(n, y.data(), back.data());
    for (int i = 0; i < n; ++i) {
      EXPECT_EQ(y[i], rounded(x[i])) << i;
      EXPECT_EQ(__builtin_bit_cast(std::uint32_t, back[i]), __builtin_bit_cast(std::uint32_t, widened(y[i]))) << i;
    }
  }
}

TEST_F(StoredRows, AreAddedToFloat32SumsWithoutRounding) {
  for (int n : kWidths) {
    const auto x = normal(n);
    std::vector<float> sums(n, 1000.25F), expected(sums);
    for (int i = 0; i < n; ++i) expected[i] += widened(x[i]);
    rows().add(n, x.data(), sums.data());
    EXPECT_EQ(sums, expected);
  }
}

TEST_F(StoredRows, RmsNormIsRoundedOnce) {
  for (int n : kWidths) {
    const auto x = normal(n, 3), weight = normal(n);
    double squares = 0;
    for (BFloat16 value : x) squares += wide(value) * wide(value);
    const double factor = 1 / std::sqrt(squares / n + 1e-6);
    std::vector<BFloat16> y(n);
    EXPECT_NEAR(rows().rms_norm(n, x.data(), weight.data(), 0, 1e-6F, y.data()) / factor, 1, 1e-5);
    for (int i = 0; i < n; ++i) expect_rounded(y[i], wide(x[i]) * factor * wide(weight[i]), n);
  }
}

TEST_F(StoredRows, RmsNormsGradientIsRoundedOnceAndItsWeightsSumsNever) {
  for (int n : kWidths) {
    const auto x = normal(n, 3), weight = normal(n), dy = normal(n);
    double squares = 0, projected = 0;
    for (BFloat16 value : x) squares += wide(value) * wide(value);
    const double factor = 1 / std::sqrt(squares / n + 1e-6);
    for (int i = 0; i < n; ++i) projected += wide(dy[i]) * wide(weight[i]) * wide(x[i]);
    std::vector<BFloat16> dx(n);
    std::vector<float> dweight(n, 100.0F);
    rows().rms_norm_backward(n, dy.data(), x.data(), weight.data(), 0, static_cast<float>(factor), dx.data(),
                             dweight.data());
    for (int i = 0; i < n; ++i) {
      expect_rounded(dx[i],
                     factor * wide(dy[i]) * wide(weight[i]) - wide(x[i]) * factor * factor * factor * projected / n, n);
      EXPECT_NEAR(dweight[i], 100 + wide(dy[i]) * wide(x[i]) * factor, 2e-5);
    }
  }
}

TEST_F(StoredRows, SwigluAndItsGradientAreRoundedOnce) {
  for (int n : kWidths) {
    const auto gate = normal(n, 3), up = normal(n), dout = normal(n);
    std::vector<BFloat16> out(n), dgate(n), dup(n);
    rows().swiglu(n, gate.data(), up.data(), out.data());
    rows().swiglu_backward(n, dout.data(), gate.data(), up.data(), dgate.data(), dup.data());
    for (int i = 0; i < n; ++i) {
      const double g = wide(gate[i]), s = 1 / (1 + std::exp(-g));
      expect_rounded(out[i], g * s * wide(up[i]), n);
      expect_rounded(dup[i], wide(dout[i]) * g * s, n);
      expect_rounded(dgate[i], wide(dout[i]) * wide(up[i]) * (s + g * s * (1 - s)), n);
    }
  }
}

TEST_F(StoredRows, WritesEndWhereTheRowEnds) {
  for (int n : kWidths) {
    const auto x = normal(n), weight = normal(n);
    std::vector<BFloat16> y(n + 3, BFloat16{7});
    rows().rms_norm(n, x.data(), weight.data(), 0, 1e-6F, y.data());
    rows().swiglu(n, x.data(), weight.data(), y.data());
    for (int i = n; i < n + 3; ++i) EXPECT_EQ(y[i], BFloat16{7});
  }
}

}  // namespace
}  // namespace carnot::kernel
