#include "carnot/core/rank/shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "carnot/core/base/random.h"
#include "carnot/core/rank/flat_layout.h"
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

/// Whether a cut of the row is one between two chunks of a tensor, or an end of the row.
bool is_at_chunk(const FlatLayout& layout, std::int64_t cut, std::int64_t chunk) {
  for (std::size_t t = 0; t < layout.num_tensors(); ++t) {
    const IndexRange tensor = layout.tensor(t);
    if (cut >= tensor.begin && cut < tensor.end) return (cut - tensor.begin) % chunk == 0;
  }
  return cut == layout.size();
}

TEST(FlatLayout, CutsAtChunksOfTensorsAsEvenlyAsTheyAllow) {
  RandomStream random(2);
  for (int trial = 0; trial < testing::trials(300); ++trial) {
    std::vector<std::int64_t> sizes(random.below(8));
    for (auto& size : sizes) size = static_cast<std::int64_t>(random.below(60));
    const std::int64_t chunk = 1 + static_cast<std::int64_t>(random.below(16));
    const std::int64_t bucket = 1 + static_cast<std::int64_t>(random.below(100));
    const int ranks = 1 + static_cast<int>(random.below(6));
    const FlatLayout layout(sizes, ranks, chunk, bucket);
    ASSERT_EQ(layout.num_ranks(), ranks);
    EXPECT_EQ(layout.size(), std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}));
    std::int64_t next = 0;
    std::vector<std::int64_t> slices(static_cast<std::size_t>(ranks), 0);
    for (int b = 0; b < layout.num_buckets(); ++b) {
      EXPECT_EQ(layout.bucket(b).begin, next);
      EXPECT_LE(layout.bucket(b).size(), bucket + chunk);
      for (int r = 0; r < ranks; ++r) {
        const IndexRange part = layout.part(b, r);
        EXPECT_EQ(part.begin, next);
        EXPECT_LE(part.begin, part.end);
        EXPECT_LE(part.size(), (layout.bucket(b).size() + ranks - 1) / ranks + chunk);
        EXPECT_EQ(layout.part_sizes(b)[r], part.size());
        EXPECT_EQ(layout.place_in_slice(b, r), (IndexRange{slices[r], slices[r] + part.size()}));
        EXPECT_TRUE(is_at_chunk(layout, part.begin, chunk)) << part.begin;
        slices[r] += part.size();
        next = part.end;
      }
      EXPECT_EQ(layout.bucket(b).end, next);
    }
    EXPECT_EQ(next, layout.size());
    for (int r = 0; r < ranks; ++r) EXPECT_EQ(layout.slice_size(r), slices[r]);
  }
}

TEST(FlatLayout, PlacesTensorsOneAfterTheOther) {
  const std::vector<std::int64_t> sizes{3, 0, 5};
  const FlatLayout layout(sizes, 2, 2, 100);
  EXPECT_EQ(layout.tensor(1), (IndexRange{3, 3}));
  EXPECT_EQ(layout.tensor(2), (IndexRange{3, 8}));
  EXPECT_EQ(layout.num_buckets(), 1);
  EXPECT_EQ(layout.part(0, 0), (IndexRange{0, 3}));  // 4 is wanted; 3 and 5 are equally near
  EXPECT_EQ(layout.part(0, 1), (IndexRange{3, 8}));
}

TEST(FlatLayout, FindsWhatLiesInARangeOfTheRow) {
  const std::vector<std::int64_t> sizes{3, 0, 5, 4};
  const FlatLayout layout(sizes, 1, 1, 100);
  const auto pieces = layout.pieces({2, 9});
  ASSERT_EQ(pieces.size(), 3U);
  EXPECT_EQ(pieces[0].tensor, 0U);
  EXPECT_EQ(pieces[0].in_tensor, (IndexRange{2, 3}));
  EXPECT_EQ(pieces[1].tensor, 2U);
  EXPECT_EQ(pieces[1].in_tensor, (IndexRange{0, 5}));
  EXPECT_EQ(pieces[1].in_range, (IndexRange{1, 6}));
  EXPECT_EQ(pieces[2].tensor, 3U);
  EXPECT_EQ(pieces[2].in_tensor, (IndexRange{0, 1}));
  EXPECT_TRUE(layout.pieces({3, 3}).empty());
}

}  // namespace
}  // namespace carnot
