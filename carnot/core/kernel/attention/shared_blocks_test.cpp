#include "carnot/core/kernel/attention/shared_blocks.h"

#include <gtest/gtest.h>

#include <set>

#include "carnot/core/base/random.h"

namespace carnot::kernel {
namespace {

using Tables = std::vector<std::vector<int*>>;

SharedBlocks find(const Tables& tables, int step) {
  const std::vector<std::span<int* const>> views(tables.begin(), tables.end());
  return SharedBlocksFinder<int>(views, step).find();
}

int in_common(const std::vector<int*>& a, const std::vector<int*>& b) {
  int count = 0;
  while (count < static_cast<int>(std::min(a.size(), b.size())) && a[count] == b[count]) ++count;
  return count;
}

/// Tables as produced by forks: each begins with a part of an earlier one, or shares nothing.
Tables forked_tables(RandomStream& random, std::vector<int>& memory, int count) {
  Tables tables;
  std::size_t next = 0;
  for (int t = 0; t < count; ++t) {
    std::vector<int*> table;
    if (t > 0 && random.below(5) > 0) {
      const auto& parent = tables[random.below(t)];
      table.assign(parent.begin(), parent.begin() + static_cast<std::ptrdiff_t>(random.below(parent.size() + 1)));
    }
    for (auto own = random.below(6); own > 0; --own) table.push_back(&memory[next++]);
    tables.push_back(table);
  }
  return tables;
}

TEST(SharedBlocks, CoverWhatEachTableHasInCommonWithAnyOther) {
  RandomStream random(3);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<int> memory(1000);
    const int count = 1 + static_cast<int>(random.below(24)), step = 1 + static_cast<int>(random.below(3));
    const Tables tables = forked_tables(random, memory, count);
    const SharedBlocks found = find(tables, step);
    EXPECT_EQ(std::set<int>(found.order.begin(), found.order.end()).size(), tables.size());
    std::vector<int> covered(tables.size(), 0);
    for (const SharedRange& range : found.ranges) {
      ASSERT_GE(range.last - range.first, 2);
      ASSERT_LT(range.begin, range.end);
      ASSERT_EQ(range.begin % step + range.end % step, 0);
      const auto& first = tables[found.order[range.first]];
      for (int place = range.first; place < range.last; ++place) {
        const int table = found.order[place];
        ASSERT_GE(in_common(first, tables[table]), range.end);
        ASSERT_EQ(covered[table], range.begin) << "ranges follow each other";
        covered[table] = range.end;
      }
    }
    for (std::size_t t = 0; t < tables.size(); ++t) {
      int most = 0;
      for (std::size_t other = 0; other < tables.size(); ++other)
        if (other != t) most = std::max(most, in_common(tables[t], tables[other]));
      ASSERT_EQ(covered[t], most / step * step) << "table " << t << " of trial " << trial;
    }
  }
}

TEST(SharedBlocks, OfAPromptABranchAndABranchOfTheBranchNest) {
  std::vector<int> m(20);
  const Tables tables = {{&m[0], &m[1], &m[2], &m[3], &m[4]},
                         {&m[9]},
                         {&m[0], &m[1], &m[5], &m[6], &m[7]},
                         {&m[0], &m[1], &m[2], &m[3], &m[8]},
                         {}};
  const SharedBlocks found = find(tables, 2);
  ASSERT_EQ(found.ranges.size(), 2u);
  EXPECT_EQ(found.ranges[0].last - found.ranges[0].first, 3);
  EXPECT_EQ(found.ranges[0].end, 2);
  EXPECT_EQ(found.ranges[1].last - found.ranges[1].first, 2);
  EXPECT_EQ(found.ranges[1].begin, 2);
  EXPECT_EQ(found.ranges[1].end, 4);
}

TEST(SharedBlocks, AreNoneWhereOnlyLaterBlocksAreTheSame) {
  std::vector<int> m(5);
  EXPECT_TRUE(find({{&m[0], &m[2], &m[3]}, {&m[1], &m[2], &m[3]}}, 1).ranges.empty());
}

}  // namespace
}  // namespace carnot::kernel
