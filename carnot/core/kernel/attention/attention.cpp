#include "carnot/core/kernel/attention/attention.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "carnot/core/base/check.h"
#include "carnot/core/base/thread_pool.h"
#include "carnot/core/kernel/attention/attention_rows.h"
#include "carnot/core/kernel/attention/forward_tasks.h"

namespace carnot::kernel {
namespace {

template <class S>
void write_key_value(const AttentionLayer<Computed<S>>& layer, const Computed<S>* key, const S* value, int kv_head,
                     int position, S* key_block, S* value_block) {
  const int slot = position % kTile;
  S* keys = key_block + static_cast<std::int64_t>(kv_head) * layer.dim * kTile;
  S* values = value_block + static_cast<std::int64_t>(kv_head) * layer.dim * kTile;
  // A reused block can contain anything, and weight 0 times anything must be 0.
  if (slot == 0) std::fill(values, values + static_cast<std::int64_t>(kTile) * layer.dim, S{});
  constexpr int kSide = std::is_same_v<S, BFloat16> ? 2 : 1;  // adjacent rows
  for (int d = 0; d < layer.dim; ++d) {
    keys[(d / kSide * kTile + slot) * kSide + d % kSide] = stored<S>(key[d]);
    values[(slot / kSide * layer.dim + d) * kSide + slot % kSide] = value[d];
  }
}

/// Writes keys and values of row x to position `position` of a sequence's blocks.
template <class S>
void write_keys_and_values(const AttentionLayer<Computed<S>>& layer, const S* x, std::int64_t angle,
                           const AttentionRows<S>& rows, int position, Computed<S>* normed, Computed<S>* key) {
  const auto block = static_cast<std::size_t>(position / kTile);
  for (int h = 0; h < layer.kv_heads; ++h) {
    position_head<S>(layer, layer.key_norm, angle, x + (layer.heads + h) * layer.dim, normed, key);
    write_key_value<S>(layer, key, x + (layer.heads + layer.kv_heads + h) * layer.dim, h, position,
                       rows.key_blocks[block], rows.value_blocks[block]);
  }
}

/// The row that holds a position of a sequence: one of its own or of the sequences before it.
template <class S>
std::int64_t row_at(const std::vector<AttentionRows<S>>& sequences, std::size_t sequence, int position) {
  while (position < sequences[sequence].past) sequence = static_cast<std::size_t>(sequences[sequence].parent);
  return sequences[sequence].begin + position - sequences[sequence].past;
}

/// Allocates blocks for sequences if the caller provided none. A sequence that continues another one uses the blocks
/// that it shares entirely, and its own from the block of its first row on.
template <class S>
struct OwnedBlocks {
  std::vector<S> memory;
  std::vector<S*> keys, values;
  std::vector<AttentionRows<S>> sequences;

  OwnedBlocks(const AttentionLayer<Computed<S>>& layer, std::span<const AttentionRows<S>> given)
      : sequences(given.begin(), given.end()) {
    const std::size_t block = static_cast<std::size_t>(layer.kv_heads) * static_cast<std::size_t>(layer.dim * kTile);
    std::size_t owned = 0, listed = 0;
    for (const auto& sequence : given) {
      if (!sequence.key_blocks.empty()) continue;
      const auto tiles = static_cast<std::size_t>(tiles_of(sequence.past + sequence.rows));
      owned += tiles - static_cast<std::size_t>(sequence.past / kTile);
      listed += tiles;
    }
    memory.resize(2 * owned * block);
    keys.reserve(listed);  // spans refer to it
    values.reserve(listed);
    S* next = memory.data();
    for (std::size_t s = 0; s < sequences.size(); ++s) {
      AttentionRows<S>& sequence = sequences[s];
      if (!sequence.key_blocks.empty()) continue;
      const std::size_t first = keys.size();
      if (sequence.past > 0) list_shared(s);
      for (auto tiles = static_cast<std::size_t>(tiles_of(sequence.past + sequence.rows)); keys.size() - first < tiles;
           next += 2 * block) {
        keys.push_back(next);
        values.push_back(next + block);
      }
      sequence.key_blocks = std::span<S* const>(keys).subspan(first);
      sequence.value_blocks = std::span<S* const>(values).subspan(first);
    }
  }

 private:
  void list_shared(std::size_t number) {
    const AttentionRows<S>& sequence = sequences[number];
    CARNOT_CHECK_GE(sequence.parent, 0);
    CARNOT_CHECK_LT(sequence.parent, static_cast<int>(number));
    const AttentionRows<S>& parent = sequences[static_cast<std::size_t>(sequence.parent)];
    CARNOT_CHECK_LE(sequence.past, parent.past + parent.rows);
    for (int b = 0; b < sequence.past / kTile; ++b) {
      keys.push_back(parent.key_blocks[static_cast<std::size_t>(b)]);
      values.push_back(parent.value_blocks[static_cast<std::size_t>(b)]);
    }
  }
};

/// Layout of a key-value head's queries: [kv_heads, rows, group, dim], with as many rows as `out` has.
template <class S>
struct Queries {
  explicit Queries(const AttentionLayer<Computed<S>>& layer, std::span<const AttentionRows<S>> sequences)
      : group(layer.heads / layer.kv_heads), dim(layer.dim) {
    for (const auto& sequence : sequences) rows = std::max(rows, sequence.begin + sequence.rows);
    memory = std::make_unique_for_overwrite<S[]>(static_cast<std::size_t>(rows * layer.heads * dim));
  }
  S* at(std::int64_t row, int kv_head) const { return memory.get() + (kv_head * rows + row) * group * dim; }

  int group, dim;
  std::int64_t rows = 0;
  std::unique_ptr<S[]> memory{};
};

/// The lists of one task, in its thread's memory.
template <class S>
struct TaskLists {
  std::vector<S> values_of_queries{};
  std::vector<AttentionQuery<S>> queries{};
  std::vector<AttentionRange> ranges{};
  std::vector<const S*> key_blocks{}, value_blocks{};
  std::vector<int> first_query{};  // of each chunk, and past the last one
  std::vector<int> done{};         // for each chunk, the number of blocks that ranges cover
};

/// One task of the forward pass: chunks of a head of keys and values.
template <class S>
class ForwardTask {
 public:
  ForwardTask(const AttentionLayer<Computed<S>>& layer, std::span<const AttentionRows<S>> sequences,
              const ForwardTasks<S>& all, const Queries<S>& queries, S* out)
      : layer_(layer), sequences_(sequences), all_(all), queries_(queries), out_(out) {}

  void run(const ChunksOfTask& chunks, int kv_head, const BFloat16Kernels& products) {
    kv_head_ = kv_head;
    list_queries(chunks);
    list_ranges(chunks);
    AttentionTask<S> task{.dim = layer_.dim,
                          .scale = layer_.scale,
                          .values_of_queries = lists_.values_of_queries.data(),
                          .queries = lists_.queries,
                          .ranges = lists_.ranges,
                          .key_blocks = lists_.key_blocks,
                          .value_blocks = lists_.value_blocks};
    if (chunks.last - chunks.first == 1)
      task.values_of_queries = queries_.at(first_row(all_.chunks()[chunks.first]), kv_head_);
    if constexpr (std::is_same_v<S, BFloat16>) {
      attend(products, task);
    } else {
      attend(task);
    }
  }

 private:
  std::int64_t first_row(const Chunk& chunk) const { return sequences_[chunk.sequence].begin + chunk.begin; }

  /// The queries of a single chunk are read in place.
  void list_queries(const ChunksOfTask& chunks) {
    lists_.queries.clear();
    lists_.values_of_queries.clear();
    lists_.first_query.clear();
    for (std::size_t c = chunks.first; c < chunks.last; ++c) {
      const Chunk& chunk = all_.chunks()[c];
      lists_.first_query.push_back(static_cast<int>(lists_.queries.size()));
      for (int r = chunk.begin; r < chunk.end; ++r) {
        const std::int64_t row = sequences_[chunk.sequence].begin + r;
        S* out = out_ + (row * layer_.heads + static_cast<std::int64_t>(kv_head_) * queries_.group) * layer_.dim;
        const int visible = sequences_[chunk.sequence].past + r + 1;
        for (int q = 0; q < queries_.group; ++q)
          lists_.queries.push_back({.first = layer_.first_visible(visible),
                                    .visible = visible,
                                    .out = out + static_cast<std::int64_t>(q) * layer_.dim});
      }
      if (chunks.last - chunks.first == 1) continue;
      const S* values = queries_.at(first_row(chunk), kv_head_);
      lists_.values_of_queries.insert(
          lists_.values_of_queries.end(), values,
          values + static_cast<std::int64_t>(chunk.end - chunk.begin) * queries_.group * layer_.dim);
    }
    lists_.first_query.push_back(static_cast<int>(lists_.queries.size()));
  }

  /// Shared blocks, then each chunk's own.
  void list_ranges(const ChunksOfTask& chunks) {
    lists_.ranges.clear();
    lists_.key_blocks.clear();
    lists_.value_blocks.clear();
    lists_.done.assign(chunks.last - chunks.first, 0);
    for (const SharedRange& range : all_.shared()) {
      const auto first = std::max(chunks.first, static_cast<std::size_t>(range.first));
      const auto last = std::min(chunks.last, static_cast<std::size_t>(range.last));
      if (first >= last) continue;
      add_range(chunks, first, last, range.begin, range.end);
    }
    for (std::size_t c = chunks.first; c < chunks.last; ++c) {
      const Chunk& chunk = all_.chunks()[c];
      const int past = sequences_[chunk.sequence].past;
      const int seen = layer_.first_visible(past + chunk.begin + 1) / (kSharedStep * kTile) * kSharedStep;
      add_range(chunks, c, c + 1, std::max(lists_.done[c - chunks.first], seen), tiles_of(past + chunk.end));
    }
  }

  void add_range(const ChunksOfTask& chunks, std::size_t first, std::size_t last, int begin, int end) {
    lists_.ranges.push_back({.first = lists_.first_query[first - chunks.first],
                             .last = lists_.first_query[last - chunks.first],
                             .begin = begin,
                             .end = end,
                             .listed = static_cast<int>(lists_.key_blocks.size())});
    const AttentionRows<S>& rows = sequences_[all_.chunks()[first].sequence];
    const std::int64_t offset = static_cast<std::int64_t>(kv_head_) * layer_.dim * kTile;
    for (int b = begin; b < end; ++b) {
      lists_.key_blocks.push_back(rows.key_blocks[static_cast<std::size_t>(b)] + offset);
      lists_.value_blocks.push_back(rows.value_blocks[static_cast<std::size_t>(b)] + offset);
    }
    for (std::size_t c = first; c < last; ++c) lists_.done[c - chunks.first] = end;
  }

  static TaskLists<S>& lists_of_thread() {
    thread_local TaskLists<S> lists;
    return lists;
  }

  const AttentionLayer<Computed<S>>& layer_;
  std::span<const AttentionRows<S>> sequences_;
  const ForwardTasks<S>& all_;
  const Queries<S>& queries_;
  S* out_;
  int kv_head_ = 0;
  TaskLists<S>& lists_ = lists_of_thread();
};

}  // namespace

template <class S>
void attention_forward(const AttentionLayer<Computed<S>>& layer, const S* qkv, const std::int64_t* positions,
                       std::span<const AttentionRows<S>> given, S* out, const BFloat16Kernels& products) {
  using T = Computed<S>;
  const OwnedBlocks<S> blocks(layer, given);
  const ForwardTasks<S> all(layer, blocks.sequences);
  const std::vector<Chunk>& chunks = all.chunks();
  const int dim = layer.dim;
  const Queries<S> queries(layer, given);

  kernel_pool().run(static_cast<std::int64_t>(chunks.size()), [&](std::int64_t c) {
    const Chunk& chunk = chunks[c];
    const AttentionRows<S>& rows = blocks.sequences[chunk.sequence];
    T* normed = scratch<T>(Scratch::Normed, dim);
    T* turned = scratch<T>(Scratch::Turned, dim);
    // In a block that is not shared entirely, the positions before its own rows are written again.
    const int repeated = rows.parent >= 0 && chunk.begin == 0 ? rows.past % kTile : 0;
    for (int p = rows.past - repeated; p < rows.past; ++p) {
      const std::int64_t row = row_at(blocks.sequences, chunk.sequence, p);
      write_keys_and_values<S>(layer, qkv + row * layer.width(), positions[row], rows, p, normed, turned);
    }
    for (int r = chunk.begin; r < chunk.end; ++r) {
      const std::int64_t row = rows.begin + r;
      const S* x = qkv + row * layer.width();
      for (int h = 0; h < layer.heads; ++h) {
        position_query<S>(layer, positions[row], x + h * dim, normed, turned);
        store_row<S>(dim, turned, queries.at(row, h / queries.group) + h % queries.group * dim);
      }
      write_keys_and_values<S>(layer, x, positions[row], rows, rows.past + r, normed, turned);
    }
  });

  // Head by head, so that blocks that several tasks share are still in the cache.
  const auto tasks = static_cast<std::int64_t>(all.tasks().size());
  kernel_pool().run(tasks * layer.kv_heads, [&](std::int64_t task) {
    ForwardTask<S>(layer, blocks.sequences, all, queries, out)
        .run(all.tasks()[static_cast<std::size_t>(task % tasks)], static_cast<int>(task / tasks), products);
  });
}

#define CARNOT_INSTANTIATE(S)                                                                           \
  template void attention_forward<S>(const AttentionLayer<Computed<S>>&, const S*, const std::int64_t*, \
                                     std::span<const AttentionRows<S>>, S*, const BFloat16Kernels&);
CARNOT_INSTANTIATE(float)
CARNOT_INSTANTIATE(double)
CARNOT_INSTANTIATE(BFloat16)

}  // namespace carnot::kernel
