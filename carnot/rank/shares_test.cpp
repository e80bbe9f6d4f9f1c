#include "carnot/rank/shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "carnot/base/random.h"
#include "carnot/rank/flat_layout.h"
#include "testing/trials.h"

namespace carnot {
namespace {

TEST(EvenShare, CoversEverythingOnceInSizesThatDifferByOne) {
  for (std::int64_t count : {0, 1, 2, 7, 16, 100})
    for (int parts : {1, 2, 3, 7, 20}) {
      std::int64_t next = 0;
      for (int part = 0; part < parts; ++part) {
        const IndexRange share = even_share(count, part, parts);
        EXPECT_EQ(share.begin, next);
        EXPECT_GE(share.size(), count / parts);
        EXPECT_LE(share.size(), (count + parts - 1) / parts);
        next = share.end;
      }
      EXPECT_EQ(next, count);
    }
}

TEST(EvenShare, OfVeryManyThingsDoesNotOverflow) {
  const std::int64_t many = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(even_share(many, 1023, 1024).end, many);
}

TEST(SharesBySize, GivesTheLargestFirstToTheLightestPart) {
  const std::vector<std::int64_t> sizes{3, 5, 4, 3, 1};
  EXPECT_EQ(shares_by_size(sizes, 3), (std::vector<int>{2, 0, 1, 2, 1}));
  EXPECT_EQ(shares_by_size(sizes, 1), std::vector<int>(5, 0));
  EXPECT_TRUE(shares_by_size({}, 2).empty());
}

TEST(SharesBySize, LeavesNoPartMoreThanTheLargestThingAheadOfAnother) {
  RandomStream random(1);
  for (int trial = 0; trial < testing::trials(200); ++trial) {
    std::vector<std::int64_t> sizes(random.below(40));
    for (auto& size : sizes) size = static_cast<std::int64_t>(random.below(1000));
    const int parts = 1 + static_cast<int>(random.below(6));
    std::vector<std::int64_t> load(parts, 0);
    const auto shares = shares_by_size(sizes, parts);
    for (std::size_t i = 0; i < sizes.size(); ++i) load.at(shares[i]) += sizes[i];
    EXPECT_EQ(std::accumulate(load.begin(), load.end(), std::int64_t{0}),
              std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}));
    const auto [least, most] = std::minmax_element(load.begin(), load.end());
    const std::int64_t largest = sizes.empty() ? 0 : *std::max_element(sizes.begin(), sizes.end());
    EXPECT_LE(*most - *least, largest);
  }
}

TEST(FlatLayout, CutsAtChunksOfTensorsAsEvenlyAsTheyAllow) {
  RandomStream random(2);
  for (int trial = 0; trial < testing::trials(300); ++trial) {
    std::vector<std::int64_t> sizes(random.below(8));
    for (auto& size : sizes) size = static_cast<std::int64_t>(random.below(60));
    const std::int64_t chunk = 1 + static_cast<std::int64_t>(random.below(16));
    const int slices = 1 + static_cast<int>(random.below(6));
    const FlatLayout layout(sizes, slices, chunk);
    ASSERT_EQ(layout.num_slices(), slices);
    EXPECT_EQ(layout.size(), std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}));
    std::int64_t next = 0;
    for (int s = 0; s < slices; ++s) {
      const IndexRange slice = layout.slice(s);
      EXPECT_EQ(slice.begin, next);
      EXPECT_LE(slice.begin, slice.end);
      EXPECT_LE(slice.size(), (layout.size() + slices - 1) / slices + chunk);
      EXPECT_LE(slice.size(), layout.longest_slice());
      next = slice.end;
      bool at_chunk = slice.begin == layout.size();
      for (std::size_t t = 0; t < layout.num_tensors(); ++t) {
        const IndexRange tensor = layout.tensor(t);
        if (slice.begin >= tensor.begin && slice.begin < tensor.end)
          at_chunk = (slice.begin - tensor.begin) % chunk == 0;
      }
      EXPECT_TRUE(at_chunk);
    }
    EXPECT_EQ(next, layout.size());
  }
}

TEST(FlatLayout, PlacesTensorsOneAfterTheOther) {
  const std::vector<std::int64_t> sizes{3, 0, 5};
  const FlatLayout layout(sizes, 2, 2);
  EXPECT_EQ(layout.tensor(1), (IndexRange{3, 3}));
  EXPECT_EQ(layout.tensor(2), (IndexRange{3, 8}));
  EXPECT_EQ(layout.slice(0), (IndexRange{0, 3}));  // 4 is wanted; 3 and 5 are equally near
  EXPECT_EQ(layout.slice(1), (IndexRange{3, 8}));
}

}  // namespace
}  // namespace carnot
