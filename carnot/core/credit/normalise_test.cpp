#include "carnot/core/credit/normalise.h"

#include <gtest/gtest.h>

#include <cmath>

#include "carnot/core/base/random.h"
#include "reference/group_advantage.h"

namespace carnot {
namespace {

TEST(Normalisation, GivesThePublishedVectors) {
  const std::vector<double> rewards = {1, 0, 0, 1, 0, 0, 0, 0};
  const std::vector<double> sample = normalised(rewards, {});
  EXPECT_NEAR(sample[0], 1.6201817, 5e-8);
  EXPECT_NEAR(sample[1], -0.5400606, 5e-8);
  const std::vector<double> population = normalised(rewards, population_normalisation());
  EXPECT_NEAR(population[0], 1.7320468, 5e-8);
  EXPECT_NEAR(population[1], -0.5773489, 5e-8);
}

TEST(Normalisation, OfEqualValuesIsExactlyZero) {
  for (double value : {0.7, 0.1, 1.0 / 3, -0.8})
    for (std::size_t n = 2; n < 40; ++n)
      for (double x : normalised(std::vector<double>(n, value), {})) EXPECT_EQ(x, 0);
}

TEST(Normalisation, OfOneValueIsZeroUnlessRawIsAskedFor) {
  const std::vector<double> one = {0.5};
  EXPECT_EQ(normalised(one, {}).front(), 0);
  EXPECT_EQ(normalised(one, {.singleton = Singleton::Raw}).front(), 0.5 / (1 + 1e-6));
  EXPECT_EQ(normalised(one, {.divide_by_std = false, .singleton = Singleton::Raw}).front(), 0.5);
}

TEST(Normalisation, EqualsItsDefinitionOnRandomGroups) {
  RandomStream random(1);
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<double> values(1 + random.below(16));
    for (double& x : values) x = random.chance(0.5) ? std::floor(3 * random.uniform()) : random.normal();
    const bool divide = random.chance(0.5);
    const std::vector<double> fast = normalised(values, {.divide_by_std = divide});
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(fast[i], reference::group_relative(values, i, divide), 1e-10) << "trial " << trial;
  }
}

TEST(Whitening, EqualsItsDefinitionOnRandomValues) {
  RandomStream random(2);
  for (int trial = 0; trial < 500; ++trial) {
    std::vector<double> values(random.below(30));
    for (double& x : values) x = random.normal();
    const std::vector<double> fast = whitened(values, {});
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(fast[i], reference::whitened(values, i), 1e-12);
  }
}

TEST(Whitening, OfOneValueOrEqualValuesIsZero) {
  EXPECT_EQ(whitened(std::vector<double>{3}, {}).front(), 0);
  for (double x : whitened(std::vector<double>(7, 0.7), {})) EXPECT_EQ(x, 0);
}

}  // namespace
}  // namespace carnot
