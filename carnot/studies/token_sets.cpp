#include "carnot/studies/token_sets.h"

#include <algorithm>

namespace carnot {
namespace {

/// The numbers of the sets within `radius` of each one, itself included.
std::vector<std::vector<std::size_t>> neighbourhoods(std::span<const TokenSet> sets, double radius) {
  constexpr double kRounding = 1e-12;  // 1 - 2/3 is a little more than 1/3
  std::vector<std::vector<std::size_t>> near(sets.size());
  for (std::size_t i = 0; i < sets.size(); ++i) {
    near[i].push_back(i);
    for (std::size_t j = 0; j < i; ++j) {
      if (1 - jaccard(sets[i], sets[j]) > radius + kRounding) continue;
      near[i].push_back(j);
      near[j].push_back(i);
    }
  }
  return near;
}

}  // namespace

TokenSet token_set(std::span<const TokenId> tokens) {
  TokenSet set(tokens.begin(), tokens.end());
  std::sort(set.begin(), set.end());
  set.erase(std::unique(set.begin(), set.end()), set.end());
  return set;
}

double jaccard(const TokenSet& a, const TokenSet& b) {
  if (a.empty() && b.empty()) return 1;
  std::size_t common = 0;
  for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end();) {
    if (*i == *j) {
      ++common, ++i, ++j;
    } else {
      ++(*i < *j ? i : j);
    }
  }
  return static_cast<double>(common) / static_cast<double>(a.size() + b.size() - common);
}

Clustering dbscan(std::span<const TokenSet> sets, double radius, int min_neighbours) {
  const auto near = neighbourhoods(sets, radius);
  const auto is_core = [&](std::size_t i) { return near[i].size() >= static_cast<std::size_t>(min_neighbours); };
  Clustering out{.cluster = std::vector<int>(sets.size(), -1)};
  for (std::size_t seed = 0; seed < sets.size(); ++seed) {
    if (out.cluster[seed] >= 0 || !is_core(seed)) continue;
    std::vector<std::size_t> open{seed};
    out.cluster[seed] = out.clusters;
    while (!open.empty()) {
      const std::size_t core = open.back();
      open.pop_back();
      for (const std::size_t neighbour : near[core]) {
        if (out.cluster[neighbour] >= 0) continue;
        out.cluster[neighbour] = out.clusters;
        if (is_core(neighbour)) open.push_back(neighbour);
      }
    }
    ++out.clusters;
  }
  out.noise = static_cast<int>(std::count(out.cluster.begin(), out.cluster.end(), -1));
  return out;
}

}  // namespace carnot
