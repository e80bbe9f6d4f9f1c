#include "carnot/core/optim/rounding.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "carnot/core/base/random.h"

namespace carnot {
namespace {

at::Tensor rounded(const at::Tensor& values, std::uint64_t key, std::int64_t first = 0) {
  const at::Tensor into = at::empty(values.sizes(), values.options().dtype(at::kBFloat16));
  round_stochastically(values, key, first, into);
  return into;
}

TEST(StochasticRounding, TakesOneOfTheTwoNeighboursAndIsRightOnAverage) {
  for (const double value : {1 + 1.0 / 1024, 1 + 7.0 / 1024, -3.3, 1e-30, 0.1}) {
    const int n = 1 << 18;
    const at::Tensor values = at::full({n}, value, at::kFloat);
    const at::Tensor got = rounded(values, 7).to(at::kDouble);
    const double low = got.min().item<double>(), high = got.max().item<double>();
    const auto single = static_cast<double>(static_cast<float>(value));
    EXPECT_LT(low, single);
    EXPECT_GT(high, single);
    EXPECT_EQ(((got == low) + (got == high)).min().item<bool>(), true) << "nothing between the neighbours";
    // The neighbours are one bit of bfloat16 apart.
    EXPECT_NEAR((high - low) / std::exp2(std::floor(std::log2(std::abs(value)))), 1.0 / 128, 1e-9);
    const double share = (single - low) / (high - low);
    EXPECT_NEAR((got.mean().item<double>() - low) / (high - low), share, 5 * std::sqrt(share * (1 - share) / n))
        << value;
  }
}

TEST(StochasticRounding, HasTheBitsOfLibTorchsOperators) {
  RandomStream random(4);
  at::Tensor values = at::empty({70'001}, at::kFloat);
  for (std::int64_t i = 0; i < values.numel(); ++i)
    values.mutable_data_ptr<float>()[i] = static_cast<float>(std::exp(20 * random.normal()) * random.normal());
  const at::Tensor into = at::empty(values.sizes(), at::kBFloat16);
  for (const std::uint64_t key : {std::uint64_t{0}, std::uint64_t{5}, ~std::uint64_t{0}}) {
    round_stochastically_portable(values, key, 12345, into);
    EXPECT_TRUE(at::equal(rounded(values, key, 12345), into));
  }
}

TEST(StochasticRounding, LeavesWhatBfloat16CanHold) {
  const at::Tensor values = at::tensor({0.0F, -0.0F, 1.0F, -1.5F, 3.0e38F * 0, std::numeric_limits<float>::infinity(),
                                        -std::numeric_limits<float>::infinity(), std::ldexp(1.0F, -126)});
  for (std::uint64_t key = 0; key < 50; ++key) EXPECT_TRUE(at::equal(rounded(values, key).to(at::kFloat), values));
}

TEST(StochasticRounding, DrawsByKeyAndElementOnly) {
  RandomStream random(3);
  at::Tensor values = at::empty({1000}, at::kFloat);
  for (int i = 0; i < 1000; ++i) values.mutable_data_ptr<float>()[i] = static_cast<float>(random.normal());
  const at::Tensor whole = rounded(values, 11);
  EXPECT_TRUE(at::equal(whole.slice(0, 300, 700), rounded(values.slice(0, 300, 700), 11, 300)));
  EXPECT_FALSE(at::equal(whole, rounded(values, 12)));
}

TEST(Halves, AreTheNearestBfloat16NumberAndTheRestWithoutLoss) {
  RandomStream random(8);
  at::Tensor values = at::empty({3, 20'011}, at::kFloat);
  for (std::int64_t i = 0; i < values.numel(); ++i)
    values.mutable_data_ptr<float>()[i] = static_cast<float>(std::exp(20 * random.normal()) * random.normal());
  std::int64_t place = 7;
  for (const double special : {0.0, -0.0, 1e-45, 3.4e38, double(INFINITY), -double(INFINITY), 1.00390625, 1.01171875})
    values.view(-1)[place++] = special;  // the last two lie between two bfloat16 numbers
  const at::Tensor upper = at::empty(values.sizes(), at::kBFloat16), lower = at::empty(values.sizes(), at::kShort);
  split_halves(values, upper, lower);
  EXPECT_TRUE(at::equal(join_halves(upper, lower), values));
  EXPECT_TRUE(at::equal(join_halves(upper, at::zeros_like(lower)), upper.to(at::kFloat)));
  const at::Tensor ties = lower == std::numeric_limits<std::int16_t>::min();
  EXPECT_GE(ties.sum().item<std::int64_t>(), 2);
  EXPECT_LE(ties.sum().item<std::int64_t>(), 10);
  EXPECT_TRUE(at::equal(upper.masked_fill(ties, 0), values.to(at::kBFloat16).masked_fill(ties, 0)));
}

TEST(Halves, HaveTheBitsOfLibTorchsOperators) {
  const at::Tensor values = at::randn({70'001}) * at::exp(10 * at::randn({70'001}));
  const at::Tensor upper = at::empty(values.sizes(), at::kBFloat16), lower = at::empty(values.sizes(), at::kShort);
  const at::Tensor their_upper = at::empty_like(upper), their_lower = at::empty_like(lower);
  split_halves(values, upper, lower);
  split_halves_portable(values, their_upper, their_lower);
  EXPECT_TRUE(at::equal(upper, their_upper));
  EXPECT_TRUE(at::equal(lower, their_lower));
  EXPECT_TRUE(at::equal(join_halves_portable(upper, lower), values));
}

}  // namespace
}  // namespace carnot
