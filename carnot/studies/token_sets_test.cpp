#include "carnot/studies/token_sets.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "carnot/core/base/random.h"

namespace carnot {
namespace {

TEST(TokenSets, JaccardCountsCommonAndAllTokensOnce) {
  const TokenSet a = token_set(std::vector<TokenId>{3, 1, 3, 2});
  EXPECT_EQ(a, (TokenSet{1, 2, 3}));
  EXPECT_DOUBLE_EQ(jaccard(a, {2, 3, 4}), 0.5);
  EXPECT_DOUBLE_EQ(jaccard(a, {}), 0);
  EXPECT_DOUBLE_EQ(jaccard({}, {}), 1);
  EXPECT_DOUBLE_EQ(jaccard(a, a), 1);
}

TEST(TokenSets, JaccardEqualsItsDefinitionOnRandomSets) {
  RandomStream random(3);
  for (int round = 0; round < 100; ++round) {
    std::set<TokenId> a, b, both, all;
    for (std::size_t i = random.below(8); i > 0; --i) a.insert(static_cast<TokenId>(random.below(10)));
    for (std::size_t i = 1 + random.below(8); i > 0; --i) b.insert(static_cast<TokenId>(random.below(10)));
    for (const TokenId x : a) (b.contains(x) ? both : all).insert(x);
    all.insert(b.begin(), b.end());
    EXPECT_DOUBLE_EQ(jaccard({a.begin(), a.end()}, {b.begin(), b.end()}),
                     static_cast<double>(both.size()) / static_cast<double>(all.size()));
  }
}

TEST(TokenSets, ClustersAreChainsOfCoresWithTheirNeighbours) {
  // 0, 1, 2 are a chain at distance 1/2 from one to the next; 3 and 4 are alike; 5 is alone.
  const std::vector<TokenSet> sets{{1, 2, 3}, {2, 3, 4}, {3, 4, 5}, {7, 8}, {7, 8}, {20}};
  const Clustering found = dbscan(sets, 0.5, 2);
  EXPECT_EQ(found.cluster, (std::vector<int>{0, 0, 0, 1, 1, -1}));
  EXPECT_EQ(found.clusters, 2);
  EXPECT_EQ(found.noise, 1);
  // Where three are needed, 1 alone is a core of the chain.
  EXPECT_EQ(dbscan(sets, 0.5, 3).cluster, (std::vector<int>{0, 0, 0, -1, -1, -1}));
  EXPECT_EQ(dbscan(sets, 0, 1).clusters, 5);
}

/// Cores joined by union over all pairs; borders belong to some cluster of a core near them.
TEST(TokenSets, CoresAreClusteredAsTheirGraphIsConnectedOnRandomSets) {
  RandomStream random(11);
  for (int round = 0; round < 40; ++round) {
    std::vector<TokenSet> sets;
    for (int i = 0; i < 15; ++i) {
      std::vector<TokenId> tokens;
      for (int t = 0; t < 4; ++t) tokens.push_back(static_cast<TokenId>(random.below(12)));
      sets.push_back(token_set(tokens));
    }
    constexpr double kRadius = 0.61;
    const auto near = [&](std::size_t i, std::size_t j) { return 1 - jaccard(sets[i], sets[j]) <= kRadius; };
    std::vector<bool> core(sets.size());
    std::vector<int> root(sets.size());
    std::iota(root.begin(), root.end(), 0);
    for (std::size_t i = 0; i < sets.size(); ++i) {
      int neighbours = 0;
      for (std::size_t j = 0; j < sets.size(); ++j) neighbours += near(i, j) ? 1 : 0;
      core[i] = neighbours >= 3;
    }
    for (std::size_t pass = 0; pass < sets.size(); ++pass)
      for (std::size_t i = 0; i < sets.size(); ++i)
        for (std::size_t j = 0; j < sets.size(); ++j)
          if (core[i] && core[j] && near(i, j)) root[i] = root[j] = std::min(root[i], root[j]);
    const Clustering found = dbscan(sets, kRadius, 3);
    for (std::size_t i = 0; i < sets.size(); ++i) {
      bool near_core = false;
      for (std::size_t j = 0; j < sets.size(); ++j) {
        if (core[i] && core[j]) {
          EXPECT_EQ(found.cluster[i] == found.cluster[j], root[i] == root[j]);
        }
        if (core[j] && near(i, j)) near_core = true;
      }
      EXPECT_EQ(found.cluster[i] >= 0, near_core);
    }
  }
}

}  // namespace
}  // namespace carnot
