#include "carnot/studies/distribution.h"

#include <gtest/gtest.h>

#include <cmath>

#include "carnot/core/base/random.h"

namespace carnot {
namespace {

TEST(Distribution, QuantilesLieBetweenNeighbours) {
  const std::vector<double> values{4, 1, 3, 2};
  EXPECT_EQ(quantile(values, 0), 1);
  EXPECT_EQ(quantile(values, 1), 4);
  EXPECT_DOUBLE_EQ(quantile(values, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile(values, 0.25), 1.75);
  EXPECT_EQ(quantile(std::vector<double>{7}, 0.3), 7);
}

TEST(Distribution, BinsHaveEqualSizesAndKeepEqualValuesTogether) {
  EXPECT_EQ(quantile_bins(std::vector<double>{40, 10, 30, 20}, 2), (std::vector<int>{1, 0, 1, 0}));
  EXPECT_EQ(quantile_bins(std::vector<double>{0, 0, 0, 9}, 2), (std::vector<int>{0, 0, 0, 1}));
  RandomStream random(5);
  std::vector<double> values;
  for (int i = 0; i < 100; ++i) values.push_back(random.uniform());
  const std::vector<int> bins = quantile_bins(values, 5);
  std::vector<int> sizes(5);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ++sizes[bins[i]];
    for (std::size_t j = 0; j < values.size(); ++j)
      if (values[i] < values[j]) {
        EXPECT_LE(bins[i], bins[j]);
      }
  }
  EXPECT_EQ(sizes, std::vector<int>(5, 20));
}

TEST(Distribution, CellsStandInTheOrderOfTheirNames) {
  const auto cells = distribution_cells(std::vector<double>{1, 3});
  const std::vector<double> expected{2, 2, 1, 1, 1.5, 2, 2.5, 3};
  ASSERT_EQ(cells.size(), distribution_columns().size());
  for (std::size_t i = 0; i < cells.size(); ++i) EXPECT_EQ(std::get<double>(cells[i]), expected[i]);
  EXPECT_TRUE(std::isnan(std::get<double>(distribution_cells({})[1])));
}

}  // namespace
}  // namespace carnot
