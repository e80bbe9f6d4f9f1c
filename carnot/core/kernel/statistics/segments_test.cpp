#include "carnot/core/kernel/statistics/segments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "carnot/core/base/random.h"
#include "reference/token_statistics.h"

namespace carnot::kernel {
namespace {

std::vector<SegmentStatistics<float>> segments_of_row(std::vector<float>& row, float inverse_temperature) {
  std::vector<SegmentStatistics<float>> segments;
  for (std::size_t first = 0; first < row.size(); first += kSegment)
    kernel_table<float>().segment_statistics(
        std::min<std::int64_t>(kSegment, static_cast<std::int64_t>(row.size() - first)), inverse_temperature,
        &row[first], &segments.emplace_back());
  return segments;
}

TEST(Segments, GiveTheStatisticsOfTheirRow) {
  RandomStream random(3);
  for (const int size : {1, 15, 511, 512, 513, 1024, 1500, 5000}) {
    for (const double temperature : {1.0, 0.7}) {
      std::vector<float> row(static_cast<std::size_t>(size));
      for (float& x : row) x = static_cast<float>(6 * random.normal());
      if (size > 600) row[600] += 60;
      const auto expected = reference::row_statistics(std::vector<double>(row.begin(), row.end()), temperature, 0, 0);
      const std::vector<float> before = row;
      const RowStatistics got = statistics_of(segments_of_row(row, static_cast<float>(1 / temperature)));
      EXPECT_NEAR(got.logsumexp, expected.logsumexp, 1e-5 * std::abs(expected.logsumexp)) << size;
      EXPECT_NEAR(got.entropy, expected.entropy, 1e-5) << size;
      for (std::size_t i = 0; i < row.size(); ++i)
        ASSERT_EQ(row[i], before[i] * static_cast<float>(1 / temperature)) << "the row is left divided";
    }
  }
}

TEST(Segments, OfAnAlmostCertainRowKeepItsEntropy) {
  std::vector<float> row(2000, 0.0f);
  row[1700] = 30;
  const double tail = 1999 * std::exp(-30.0);
  const RowStatistics got = statistics_of(segments_of_row(row, 1));
  EXPECT_NEAR(got.entropy / (tail * 31), 1, 0.01) << "segments are added in double";
}

}  // namespace
}  // namespace carnot::kernel
