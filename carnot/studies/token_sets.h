// studies/token_sets.h -- texts as sets of tokens: how alike two are, and how many clusters there are.
#pragma once

#include <span>
#include <vector>

#include "carnot/core/data/tokens.h"

namespace carnot {

/// Sorted, each token once.
using TokenSet = std::vector<TokenId>;

TokenSet token_set(std::span<const TokenId> tokens);

/// |a and b| / |a or b|; 1 of two empty sets.
double jaccard(const TokenSet& a, const TokenSet& b);

struct Clustering {
  std::vector<int> cluster{};  ///< of each set, from 0; -1: noise
  int clusters = 0;
  int noise = 0;
};

/// DBSCAN (Ester et al. 1996) over the distance 1 - jaccard. A set with at least `min_neighbours` sets, itself
/// included, within `radius` (inclusive) is a core; cores within each other's radius share a cluster, and a set near a
/// core joins the first such cluster.
Clustering dbscan(std::span<const TokenSet> sets, double radius, int min_neighbours);

}  // namespace carnot
