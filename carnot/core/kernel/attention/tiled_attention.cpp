#include <algorithm>
#include <cmath>
#include <vector>

#include "carnot/core/kernel/attention/attention_task.h"

namespace carnot::kernel {
namespace {

constexpr int kQueriesOfLoop = 4;  // as in kernel_table's loops

/// Blocks that all queries use before the next ones are read: their keys stay in the first-level cache.
constexpr int kTilesAtOnce = 8;

template <class T>
int first_tile(const AttentionQuery<T>& query) {
  return query.first / kTile;
}

/// Calls use(first query, number of queries, first block, number of blocks, index of the first address).
template <class T, class Use>
void for_each_tile(const AttentionTask<T>& in, int first, int last, const Use& use) {
  for (const AttentionRange& range : in.ranges) {
    const int begin = std::max(first, range.first), end = std::min(last, range.last);
    for (int tile = range.begin; tile < range.end; tile += kTilesAtOnce) {
      for (int query = begin; query < end; query += kQueriesOfLoop) {
        const int count = std::min(kQueriesOfLoop, end - query);
        const int seen = std::max(tile, first_tile(in.queries[query]));
        const int needed = std::min(range.end, tiles_of(in.queries[query + count - 1].visible));
        const int tiles = std::min(tile + kTilesAtOnce, needed) - seen;
        if (tiles > 0) use(query, count, seen, tiles, range.listed + seen - range.begin);
      }
    }
  }
}

template <class T>
T* task_memory(std::size_t slot, std::size_t size) {
  thread_local std::vector<T> memory[2];
  if (memory[slot].size() < size) memory[slot].resize(size);
  return memory[slot].data();
}

}  // namespace

template <class T>
void attend(const AttentionTask<T>& in) {
  const KernelTable<T>& kernels = kernel_table<T>();
  const int origin = in.ranges.front().begin;
  int most = 0;
  for (const auto& query : in.queries) most = std::max(most, tiles_of(query.visible) - origin);
  // Queries that share a loop can differ by one block, at either end.
  const std::int64_t row = static_cast<std::int64_t>(most + 1) * kTile;
  T* scores = task_memory<T>(0, kQueriesAtOnce * row);
  T* results = task_memory<T>(1, static_cast<std::size_t>(kQueriesAtOnce) * in.dim);
  const int total = static_cast<int>(in.queries.size());
  for (int first = 0; first < total; first += kQueriesAtOnce) {
    const int last = std::min(total, first + kQueriesAtOnce);
    for_each_tile(in, first, last, [&](int query, int count, int tile, int tiles, int listed) {
      kernels.scores(count, tiles, in.dim, in.values_of_queries + static_cast<std::int64_t>(query) * in.dim, in.dim,
                     in.key_blocks.data() + listed, in.scale, scores + (query - first) * row + (tile - origin) * kTile,
                     row);
    });
    for (int query = first; query < last; ++query) {
      const AttentionQuery<T>& seen = in.queries[query];
      const int begin = first_tile(seen) * kTile;
      T* weights = scores + (query - first) * row + begin - origin * kTile;
      std::fill_n(weights, seen.first - begin, T(-INFINITY));
      kernels.softmax(weights, seen.visible - begin);
      std::fill_n(weights + tiles_of(seen.visible - begin) * kTile, kTile, T(0));
      if (begin > origin * kTile) std::fill_n(weights - kTile, kTile, T(0));
    }
    for_each_tile(in, first, last, [&](int query, int count, int tile, int tiles, int listed) {
      kernels.weighted_values(count, tiles, in.dim, scores + (query - first) * row + (tile - origin) * kTile, row,
                              in.value_blocks.data() + listed, results + (query - first) * in.dim, in.dim,
                              tile > first_tile(in.queries[query]));
    });
    for (int query = first; query < last; ++query)
      std::copy_n(results + (query - first) * in.dim, in.dim, in.queries[query].out);
  }
}

template void attend<float>(const AttentionTask<float>&);
template void attend<double>(const AttentionTask<double>&);

}  // namespace carnot::kernel
