#include <algorithm>
#include <vector>

#include "carnot/core/kernel/attention/attention_task.h"

namespace carnot::kernel {
namespace {

constexpr int kQueriesOfLoop = 4;  // as in kernel_table's loops

/// Blocks that all queries use before the next ones are read: their keys stay in the first-level cache.
constexpr int kTilesAtOnce = 8;

/// Calls use(first query, number of queries, first block, number of blocks, index of the first address).
template <class T, class Use>
void for_each_tile(const AttentionTask<T>& in, int first, int last, const Use& use) {
  for (const AttentionRange& range : in.ranges) {
    const int begin = std::max(first, range.first), end = std::min(last, range.last);
    for (int tile = range.begin; tile < range.end; tile += kTilesAtOnce) {
      for (int query = begin; query < end; query += kQueriesOfLoop) {
        const int count = std::min(kQueriesOfLoop, end - query);
        const int needed = std::min(range.end, tiles_of(in.queries[query + count - 1].visible));
        const int tiles = std::min(kTilesAtOnce, needed - tile);
        if (tiles > 0) use(query, count, tile, tiles, range.listed + tile - range.begin);
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
  int most = 0;
  for (const auto& query : in.queries) most = std::max(most, tiles_of(query.visible));
  // Queries that share a loop can differ by one block.
  const std::int64_t row = static_cast<std::int64_t>(most + 1) * kTile;
  T* scores = task_memory<T>(0, kQueriesAtOnce * row);
  T* results = task_memory<T>(1, static_cast<std::size_t>(kQueriesAtOnce) * in.dim);
  const int total = static_cast<int>(in.queries.size());
  for (int first = 0; first < total; first += kQueriesAtOnce) {
    const int last = std::min(total, first + kQueriesAtOnce);
    for_each_tile(in, first, last, [&](int query, int count, int tile, int tiles, int listed) {
      kernels.scores(count, tiles, in.dim, in.values_of_queries + static_cast<std::int64_t>(query) * in.dim, in.dim,
                     in.key_blocks.data() + listed, in.scale, scores + (query - first) * row + tile * kTile, row);
    });
    for (int query = first; query < last; ++query) {
      T* weights = scores + (query - first) * row;
      kernels.softmax(weights, in.queries[query].visible);
      std::fill_n(weights + tiles_of(in.queries[query].visible) * kTile, kTile, T(0));
    }
    for_each_tile(in, first, last, [&](int query, int count, int tile, int tiles, int listed) {
      kernels.weighted_values(count, tiles, in.dim, scores + (query - first) * row + tile * kTile, row,
                              in.value_blocks.data() + listed, results + (query - first) * in.dim, in.dim, tile > 0);
    });
    for (int query = first; query < last; ++query)
      std::copy_n(results + (query - first) * in.dim, in.dim, in.queries[query].out);
  }
}

template void attend<float>(const AttentionTask<float>&);
template void attend<double>(const AttentionTask<double>&);

}  // namespace carnot::kernel
