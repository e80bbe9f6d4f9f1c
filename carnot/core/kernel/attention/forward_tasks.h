// kernel/attention/forward_tasks.h -- how the rows of a forward pass are divided into tasks.
//
// A sequence with many rows is cut into chunks. Sequences with few rows, as in decoding, share a task if they share
// blocks; with a window, each has its own task. The division into tasks changes no bit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

#include "carnot/core/base/thread_pool.h"
#include "carnot/core/kernel/attention/attention.h"
#include "carnot/core/kernel/attention/attention_task.h"
#include "carnot/core/kernel/attention/shared_blocks.h"

namespace carnot::kernel {

/// A range of one sequence's rows.
struct Chunk {
  std::size_t sequence = 0;
  int begin = 0;
  int end = 0;
};

/// Rows of one task: in bfloat16, enough to make packing the keys cheap by comparison.
template <class S>
int rows_of_task(const AttentionLayer<Computed<S>>& layer) {
  constexpr int kFew = 32, kMany = 128;
  static_assert(kFew % kTile == 0 && kMany % kTile == 0);
  return std::is_same_v<S, BFloat16> && layer.heads < 4 * layer.kv_heads ? kMany : kFew;
}

// Chunks end where tiles end, so that two tasks never write to one block.
template <class S>
std::vector<Chunk> chunks_of(std::span<const AttentionRows<S>> sequences, int most) {
  std::vector<Chunk> chunks;
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    for (int r = 0; r < sequences[s].rows;) {
      const int end = std::min(sequences[s].rows, r + most - (sequences[s].past + r) % most);
      chunks.push_back({s, r, end});
      r = end;
    }
  }
  return chunks;
}

/// The chunks of one task: one, or several that have few queries each and share blocks.
struct ChunksOfTask {
  std::size_t first = 0, last = 0;
};

/// The chunks in the order of the tasks, and the blocks that adjacent ones share.
template <class S>
class ForwardTasks {
 public:
  /// `sequences` have blocks. `sequences` and `layer` must outlive this object.
  ForwardTasks(const AttentionLayer<Computed<S>>& layer, std::span<const AttentionRows<S>> sequences)
      : layer_(layer), sequences_(sequences) {
    std::vector<Chunk> small;
    for (const Chunk& chunk : chunks_of<S>(sequences, rows_of_task<S>(layer))) {
      if (layer.window == 0 && 2 * queries_of(chunk) <= kQueriesAtOnce && past_blocks(chunk) >= kSharedStep) {
        small.push_back(chunk);
      } else {
        add_alone(chunk);
      }
    }
    std::vector<std::span<S* const>> tables;
    for (const Chunk& chunk : small)
      tables.push_back(sequences_[chunk.sequence].key_blocks.first(static_cast<std::size_t>(past_blocks(chunk))));
    const SharedBlocks found = SharedBlocksFinder<S>(tables, kSharedStep).find();
    const auto alone = chunks_.size();
    for (const int place : found.order) chunks_.push_back(small[static_cast<std::size_t>(place)]);
    shared_ = found.ranges;
    for (SharedRange& range : shared_) {
      range.first += static_cast<int>(alone);
      range.last += static_cast<int>(alone);
    }
    auto next = alone;
    for (const SharedRange& range : shared_) {
      if (range.begin > 0) continue;
      for (; next < static_cast<std::size_t>(range.first); ++next) tasks_.push_back({next, next + 1});
      next = static_cast<std::size_t>(range.last);
      add_together(range);
    }
    for (; next < chunks_.size(); ++next) tasks_.push_back({next, next + 1});
  }

  const std::vector<Chunk>& chunks() const { return chunks_; }
  const std::vector<ChunksOfTask>& tasks() const { return tasks_; }
  const std::vector<SharedRange>& shared() const { return shared_; }

 private:
  int queries_of(const Chunk& chunk) const { return (chunk.end - chunk.begin) * (layer_.heads / layer_.kv_heads); }
  /// Whole blocks before the chunk's rows, all of which the rows see.
  int past_blocks(const Chunk& chunk) const { return (sequences_[chunk.sequence].past + chunk.begin) / kTile; }

  void add_alone(const Chunk& chunk) {
    tasks_.push_back({chunks_.size(), chunks_.size() + 1});
    chunks_.push_back(chunk);
  }

  /// As few tasks as their numbers of queries allow, of about the same size, but at least one for each thread.
  void add_together(const SharedRange& range) {
    const auto first = static_cast<std::size_t>(range.first), last = static_cast<std::size_t>(range.last);
    int queries = 0, most = 1;
    for (std::size_t c = first; c < last; ++c) {
      queries += queries_of(chunks_[c]);
      most = std::max(most, queries_of(chunks_[c]));
    }
    const int heads = layer_.kv_heads, threads = (kernel_pool().threads() + heads - 1) / heads;
    const int fit = kQueriesAtOnce / most * most;
    const auto tasks = std::min(last - first, static_cast<std::size_t>(std::max((queries + fit - 1) / fit, threads)));
    // With chunks of different sizes, the division can be less even.
    for (std::size_t t = 0; t < tasks; ++t) {
      const std::size_t end = first + (t + 1) * (last - first) / tasks;
      for (std::size_t begin = first + t * (last - first) / tasks; begin < end;) {
        std::size_t next = begin;
        for (int held = 0; next < end && held + queries_of(chunks_[next]) <= kQueriesAtOnce; ++next)
          held += queries_of(chunks_[next]);
        tasks_.push_back({begin, next});
        begin = next;
      }
    }
  }

  const AttentionLayer<Computed<S>>& layer_;
  std::span<const AttentionRows<S>> sequences_;
  std::vector<Chunk> chunks_{};
  std::vector<SharedRange> shared_{};
  std::vector<ChunksOfTask> tasks_{};
};

}  // namespace carnot::kernel
