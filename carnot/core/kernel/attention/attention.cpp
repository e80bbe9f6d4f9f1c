#include "carnot/core/kernel/attention/attention.h"

#include <algorithm>
#include <memory>
#include <type_traits>
#include <vector>

#include "carnot/core/base/check.h"
#include "carnot/core/base/thread_pool.h"
#include "carnot/core/kernel/attention/attention_task.h"
#include "carnot/core/kernel/attention/forward_tasks.h"
#include "carnot/core/kernel/dispatch.h"

namespace carnot::kernel {
namespace {

/// Row x in the computed type: x itself, or widened into `scratch`.
template <class S>
const Computed<S>* wide_row(std::int64_t n, const S* x, [[maybe_unused]] Computed<S>* scratch) {
  if constexpr (std::is_same_v<S, Computed<S>>) {
    return x;
  } else {
    storage_table<S>().widen(n, x, scratch);
    return scratch;
  }
}
template <class S>
void copy_wide(std::int64_t n, const S* x, Computed<S>* y) {
  if constexpr (std::is_same_v<S, Computed<S>>) {
    std::copy_n(x, n, y);
  } else {
    storage_table<S>().widen(n, x, y);
  }
}
template <class S>
void store_row(std::int64_t n, const Computed<S>* x, S* y) {
  if constexpr (std::is_same_v<S, Computed<S>>) {
    std::copy_n(x, n, y);
  } else {
    storage_table<S>().round(n, x, y);
  }
}

/// One head's query or key of one row: normalised if requested, and rotated.
template <class S>
void position_head(const AttentionLayer<Computed<S>>& layer, const Computed<S>* norm, std::int64_t position, const S* x,
                   Computed<S>* scratch, Computed<S>* y) {
  using T = Computed<S>;
  const T* wide = wide_row<S>(layer.dim, x, scratch);
  if (norm != nullptr) {
    storage_table<T>().rms_norm(layer.dim, wide, norm, layer.norm_epsilon, scratch);
    wide = scratch;
  }
  const int half = layer.dim / 2;
  kernel_table<T>().rotate(half, layer.cosine + position * half, layer.sine + position * half, T(1), wide, y);
}

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

/// Memory of one task, which its thread keeps between calls.
template <class T>
T* scratch(std::size_t slot, std::size_t size) {
  thread_local std::vector<T> memory[12];
  if (memory[slot].size() < size) memory[slot].resize(size);
  return memory[slot].data();
}

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
        for (int q = 0; q < queries_.group; ++q)
          lists_.queries.push_back({.visible = sequences_[chunk.sequence].past + r + 1,
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
      add_range(chunks, c, c + 1, lists_.done[c - chunks.first], tiles_of(sequences_[chunk.sequence].past + chunk.end));
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
    T* normed = scratch<T>(0, dim);
    T* turned = scratch<T>(1, dim);
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
        position_head<S>(layer, layer.query_norm, positions[row], x + h * dim, normed, turned);
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

namespace {

/// The unit of the gradient: one key-value head, and a tree of sequences: one without a parent, and all that continue
/// it.
template <class S>
struct BackwardInputs {
  const AttentionLayer<Computed<S>>* layer = nullptr;
  const S* qkv = nullptr;
  const std::int64_t* positions = nullptr;
  std::span<const AttentionRows<S>> sequences{};
  std::span<const std::size_t> tree{};  // indices of the sequences, ascending
  int kv_head = 0;
  const S* out = nullptr;
  const S* dout = nullptr;
  S* dqkv = nullptr;
  Computed<S>* dquery_norm = nullptr;  // this task's own sums, or null
  Computed<S>* dkey_norm = nullptr;
};

/// Works on widened copies of keys and values, which have the bits that the forward pass read.
template <class S>
class BackwardTask {
  using T = Computed<S>;

 public:
  explicit BackwardTask(const BackwardInputs<S>& in)
      : in_(in), layer_(*in.layer), kv_head_(in.kv_head), dim_(layer_.dim), group_(layer_.heads / layer_.kv_heads) {}

  void run();

 private:
  /// A position of a sequence: a row of the call, and the place of its gradients in the tree.
  struct Place {
    std::int64_t row = 0;
    std::int64_t in_tree = 0;
  };
  void begin_sequence(std::size_t number, std::int64_t first_in_tree);
  void load_keys_and_values();
  void query_group(int first, int count);
  void keep_gradients();
  void write_key_gradients();
  void head_gradient(const T* dy, const T* norm, std::int64_t row, const S* x, S* dx, T* dnorm);
  const S* row_of(std::int64_t row) const { return in_.qkv + row * layer_.width(); }

  BackwardInputs<S> in_;
  const AttentionLayer<T>& layer_;
  int kv_head_, dim_, group_;

  // Of the current sequence.
  AttentionRows<S> rows_{};
  std::vector<Place> places_{};  // by position
  int tiles_ = 0;
  std::int64_t padded_ = 0;
  T *key_columns_ = nullptr, *key_rows_ = nullptr, *value_columns_ = nullptr, *dkey_ = nullptr, *dvalue_ = nullptr;
  std::vector<const T*> key_column_tiles_{}, key_row_tiles_{}, value_column_tiles_{};

  // For the tree: where its sequences' rows begin, and sums by row.
  std::vector<std::int64_t> first_in_tree_{};
  T *tree_dkey_ = nullptr, *tree_dvalue_ = nullptr;
};

template <class S>
void BackwardTask<S>::run() {
  std::int64_t rows = 0;
  for (const std::size_t number : in_.tree) rows += in_.sequences[number].rows;
  tree_dkey_ = scratch<T>(10, static_cast<std::size_t>(rows * dim_));
  tree_dvalue_ = scratch<T>(11, static_cast<std::size_t>(rows * dim_));
  std::int64_t first_in_tree = 0;
  for (const std::size_t number : in_.tree) {
    begin_sequence(number, first_in_tree);
    load_keys_and_values();
    const int total = rows_.rows * group_;
    for (int first = 0; first < total; first += kQueriesOfPass)
      query_group(first, std::min(kQueriesOfPass, total - first));
    keep_gradients();
    first_in_tree += rows_.rows;
  }
  write_key_gradients();
}

template <class S>
void BackwardTask<S>::begin_sequence(std::size_t number, std::int64_t first_in_tree) {
  rows_ = in_.sequences[number];
  first_in_tree_.push_back(first_in_tree);
  places_.resize(static_cast<std::size_t>(rows_.past + rows_.rows));
  tiles_ = tiles_of(rows_.past + rows_.rows);
  padded_ = static_cast<std::int64_t>(tiles_) * kTile;
  // From the end: the sequence's own rows, then those of the sequences before it.
  for (int position = rows_.past + rows_.rows; position > 0;) {
    const AttentionRows<S>& owner = in_.sequences[number];
    const auto in_tree = std::lower_bound(in_.tree.begin(), in_.tree.end(), number) - in_.tree.begin();
    for (; position > owner.past; --position) {
      const std::int64_t row = position - 1 - owner.past;
      places_[static_cast<std::size_t>(position - 1)] = {
          .row = owner.begin + row, .in_tree = first_in_tree_[static_cast<std::size_t>(in_tree)] + row};
    }
    number = static_cast<std::size_t>(owner.parent);
  }
}

template <class S>
void BackwardTask<S>::load_keys_and_values() {
  const auto size = static_cast<std::size_t>(padded_ * dim_);
  key_columns_ = scratch<T>(0, size);
  key_rows_ = scratch<T>(1, size);
  value_columns_ = scratch<T>(2, size);
  dkey_ = scratch<T>(3, size);
  dvalue_ = scratch<T>(4, size);
  for (T* memory : {key_columns_, key_rows_, value_columns_, dkey_, dvalue_}) std::fill(memory, memory + size, T(0));
  T* normed = scratch<T>(5, dim_);
  for (std::size_t p = 0; p < places_.size(); ++p) {
    const auto r = static_cast<std::int64_t>(p);
    const std::int64_t row = places_[p].row;
    T* key = key_rows_ + r * dim_;
    position_head<S>(layer_, layer_.key_norm, in_.positions[row], row_of(row) + (layer_.heads + kv_head_) * dim_,
                     normed, key);
    const S* value = row_of(row) + (layer_.heads + layer_.kv_heads + kv_head_) * dim_;
    const std::int64_t column = r / kTile * kTile * dim_ + r % kTile;
    for (int d = 0; d < dim_; ++d) {
      key[d] = widened(stored<S>(key[d]));
      key_columns_[column + d * kTile] = key[d];
      value_columns_[column + d * kTile] = widened(value[d]);
    }
  }
  key_column_tiles_.resize(tiles_);
  key_row_tiles_.resize(tiles_);
  value_column_tiles_.resize(tiles_);
  for (std::size_t t = 0; t < key_column_tiles_.size(); ++t) {
    const std::int64_t offset = static_cast<std::int64_t>(t) * kTile * dim_;
    key_column_tiles_[t] = key_columns_ + offset;
    key_row_tiles_[t] = key_rows_ + offset;
    value_column_tiles_[t] = value_columns_ + offset;
  }
}

/// A row's own sequence writes its gradients first; sequences that continue it add theirs.
template <class S>
void BackwardTask<S>::keep_gradients() {
  const StorageTable<T>& wide = storage_table<T>();
  for (std::size_t p = 0; p < places_.size(); ++p) {
    const auto offset = static_cast<std::int64_t>(p) * dim_, kept = places_[p].in_tree * dim_;
    if (p >= static_cast<std::size_t>(rows_.past)) {
      std::copy_n(dkey_ + offset, dim_, tree_dkey_ + kept);
      std::copy_n(dvalue_ + offset, dim_, tree_dvalue_ + kept);
    } else {
      wide.add(dim_, dkey_ + offset, tree_dkey_ + kept);
      wide.add(dim_, dvalue_ + offset, tree_dvalue_ + kept);
    }
  }
}

template <class S>
void BackwardTask<S>::query_group(int first, int count) {
  const KernelTable<T>& kernels = kernel_table<T>();
  const int needed = tiles_of(rows_.past + (first + count - 1) / group_ + 1);
  T* probability = scratch<T>(6, kQueriesOfPass * padded_);
  T* dscore = scratch<T>(7, kQueriesOfPass * padded_);
  T* query = scratch<T>(8, 3 * kQueriesOfPass * dim_);
  T* gradient = query + kQueriesOfPass * dim_;  // of the output
  T* dquery = gradient + kQueriesOfPass * dim_;
  T* normed = scratch<T>(5, dim_);
  const auto row = [&](int i) { return (first + i) / group_; };
  const auto head = [&](int i) { return kv_head_ * group_ + (first + i) % group_; };
  const auto place = [&](int i) { return ((rows_.begin + row(i)) * layer_.heads + head(i)) * dim_; };

  for (int i = 0; i < count; ++i) {
    position_head<S>(layer_, layer_.query_norm, in_.positions[rows_.begin + row(i)],
                     row_of(rows_.begin + row(i)) + head(i) * dim_, normed, query + i * dim_);
    for (int d = 0; d < dim_; ++d) query[i * dim_ + d] = widened(stored<S>(query[i * dim_ + d]));
    copy_wide<S>(dim_, in_.dout + place(i), gradient + i * dim_);
  }
  kernels.scores(count, needed, dim_, query, dim_, key_column_tiles_.data(), layer_.scale, probability, padded_);
  kernels.scores(count, needed, dim_, gradient, dim_, value_column_tiles_.data(), T(1), dscore, padded_);
  for (int i = 0; i < count; ++i) {
    T* p = probability + i * padded_;
    T* ds = dscore + i * padded_;
    const int visible = rows_.past + row(i) + 1;
    kernels.softmax(p, visible);
    std::fill(p + visible, p + needed * kTile, T(0));
    const T inner = kernels.dot(dim_, gradient + i * dim_, wide_row<S>(dim_, in_.out + place(i), normed));
    for (int j = 0; j < visible; ++j) ds[j] = p[j] * (ds[j] - inner) * layer_.scale;
    std::fill(ds + visible, ds + needed * kTile, T(0));
  }
  const int keys = rows_.past + row(count - 1) + 1;
  kernels.weighted_values(count, needed, dim_, dscore, padded_, key_row_tiles_.data(), dquery, dim_, false);
  kernels.add_outer(count, keys, dim_, dscore, padded_, query, dim_, dkey_);
  kernels.add_outer(count, keys, dim_, probability, padded_, gradient, dim_, dvalue_);
  for (int i = 0; i < count; ++i)
    head_gradient(dquery + i * dim_, layer_.query_norm, rows_.begin + row(i),
                  row_of(rows_.begin + row(i)) + head(i) * dim_,
                  in_.dqkv + (rows_.begin + row(i)) * layer_.width() + head(i) * dim_, in_.dquery_norm);
}

template <class S>
void BackwardTask<S>::write_key_gradients() {
  std::int64_t in_tree = 0;
  for (const std::size_t number : in_.tree) {
    const AttentionRows<S>& rows = in_.sequences[number];
    for (std::int64_t row = rows.begin; row < rows.begin + rows.rows; ++row, ++in_tree) {
      S* out_row = in_.dqkv + row * layer_.width();
      head_gradient(tree_dkey_ + in_tree * dim_, layer_.key_norm, row, row_of(row) + (layer_.heads + kv_head_) * dim_,
                    out_row + (layer_.heads + kv_head_) * dim_, in_.dkey_norm);
      store_row<S>(dim_, tree_dvalue_ + in_tree * dim_, out_row + (layer_.heads + layer_.kv_heads + kv_head_) * dim_);
    }
  }
}

template <class S>
void BackwardTask<S>::head_gradient(const T* dy, const T* norm, std::int64_t row, const S* x, S* dx, T* dnorm) {
  const StorageTable<T>& wide = storage_table<T>();
  const int half = dim_ / 2;
  T* turned = scratch<T>(9, 4 * dim_);
  T *normed = turned + dim_, *wide_x = normed + dim_, *wide_dx = wide_x + dim_;
  kernel_table<T>().rotate(half, layer_.cosine + in_.positions[row] * half, layer_.sine + in_.positions[row] * half,
                           T(-1), dy, turned);
  if (norm == nullptr) return store_row<S>(dim_, turned, dx);
  const T* values = wide_row<S>(dim_, x, wide_x);
  const T factor = wide.rms_norm(dim_, values, norm, layer_.norm_epsilon, normed);
  wide.rms_norm_backward(dim_, turned, values, norm, factor, wide_dx, dnorm);
  store_row<S>(dim_, wide_dx, dx);
}

/// Indices of the sequences, grouped by common root, in order.
template <class S>
std::vector<std::vector<std::size_t>> trees_of(std::span<const AttentionRows<S>> sequences) {
  std::vector<std::vector<std::size_t>> trees;
  std::vector<std::size_t> tree_of;
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    const int parent = sequences[s].parent;
    CARNOT_CHECK_LT(parent, static_cast<int>(s));
    tree_of.push_back(parent < 0 ? trees.size() : tree_of[static_cast<std::size_t>(parent)]);
    if (parent < 0) trees.emplace_back();
    trees[tree_of.back()].push_back(s);
  }
  return trees;
}

}  // namespace

template <class S>
void attention_backward(const AttentionLayer<Computed<S>>& layer, const S* qkv, const std::int64_t* positions,
                        std::span<const AttentionRows<S>> sequences, const S* out, const S* dout, S* dqkv,
                        Computed<S>* dquery_norm, Computed<S>* dkey_norm) {
  using T = Computed<S>;
  const bool norms = layer.query_norm != nullptr;
  const auto trees = trees_of(sequences);
  const std::size_t tasks = trees.size() * static_cast<std::size_t>(layer.kv_heads);
  const auto dim = static_cast<std::size_t>(layer.dim);
  std::vector<T> norm_sums(norms ? 2 * tasks * dim : 0);
  kernel_pool().run(static_cast<std::int64_t>(tasks), [&](std::int64_t index) {
    const auto task = static_cast<std::size_t>(index);
    const auto kv_heads = static_cast<std::size_t>(layer.kv_heads);
    T* sums = norms ? norm_sums.data() + 2 * task * dim : nullptr;
    BackwardTask<S>({.layer = &layer,
                     .qkv = qkv,
                     .positions = positions,
                     .sequences = sequences,
                     .tree = trees[task / kv_heads],
                     .kv_head = static_cast<int>(task % kv_heads),
                     .out = out,
                     .dout = dout,
                     .dqkv = dqkv,
                     .dquery_norm = sums,
                     .dkey_norm = norms ? sums + dim : nullptr})
        .run();
  });
  if (!norms) return;
  for (std::size_t task = 0; task < tasks; ++task) {
    storage_table<T>().add(layer.dim, norm_sums.data() + 2 * task * dim, dquery_norm);
    storage_table<T>().add(layer.dim, norm_sums.data() + (2 * task + 1) * dim, dkey_norm);
  }
}

#define CARNOT_INSTANTIATE(S)                                                                                  \
  template void attention_forward<S>(const AttentionLayer<Computed<S>>&, const S*, const std::int64_t*,        \
                                     std::span<const AttentionRows<S>>, S*, const BFloat16Kernels&);           \
  template void attention_backward<S>(const AttentionLayer<Computed<S>>&, const S*, const std::int64_t*,       \
                                      std::span<const AttentionRows<S>>, const S*, const S*, S*, Computed<S>*, \
                                      Computed<S>*);
CARNOT_INSTANTIATE(float)
CARNOT_INSTANTIATE(double)
CARNOT_INSTANTIATE(BFloat16)

}  // namespace carnot::kernel
