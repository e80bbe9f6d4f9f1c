#include "carnot/kernel/attention/attention.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "carnot/base/check.h"
#include "carnot/base/thread_pool.h"
#include "carnot/kernel/dispatch.h"

namespace carnot::kernel {
namespace {

constexpr int kQueries = 4;    // queries that share a pass over the keys
constexpr int kRowChunk = 32;  // rows of one task

int tiles_of(int positions) { return (positions + kTile - 1) / kTile; }

/// The row x as it is computed with: itself, or widened into `scratch`.
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

/// One head's query or key of one row: normalised where asked, rotated.
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
  // A reused block may hold anything; weight 0 times anything must be 0.
  if (slot == 0) std::fill(values, values + static_cast<std::int64_t>(kTile) * layer.dim, S{});
  for (int d = 0; d < layer.dim; ++d) keys[d * kTile + slot] = stored<S>(key[d]);
  std::copy(value, value + layer.dim, values + static_cast<std::int64_t>(slot) * layer.dim);
}

/// Sequences with blocks of their own where the caller gave none.
template <class S>
struct OwnedBlocks {
  std::vector<S> memory;
  std::vector<S*> keys, values;
  std::vector<AttentionRows<S>> sequences;

  OwnedBlocks(const AttentionLayer<Computed<S>>& layer, std::span<const AttentionRows<S>> given)
      : sequences(given.begin(), given.end()) {
    const std::size_t block = static_cast<std::size_t>(layer.kv_heads) * static_cast<std::size_t>(layer.dim * kTile);
    std::size_t blocks = 0;
    for (const auto& sequence : given)
      if (sequence.key_blocks.empty()) blocks += static_cast<std::size_t>(tiles_of(sequence.rows));
    memory.resize(2 * blocks * block);
    for (std::size_t b = 0; b < blocks; ++b) {
      keys.push_back(memory.data() + 2 * b * block);
      values.push_back(memory.data() + (2 * b + 1) * block);
    }
    std::size_t next = 0;
    for (auto& sequence : sequences) {
      if (!sequence.key_blocks.empty()) continue;
      CARNOT_CHECK_EQ(sequence.past, 0);
      const auto count = static_cast<std::size_t>(tiles_of(sequence.rows));
      sequence.key_blocks = std::span<S* const>(keys).subspan(next, count);
      sequence.value_blocks = std::span<S* const>(values).subspan(next, count);
      next += count;
    }
  }
};

/// A stretch of one sequence's rows.
struct Chunk {
  std::size_t sequence = 0;
  int begin = 0;
  int end = 0;
};

// Chunks end where tiles end: two tasks never write into one block.
template <class S>
std::vector<Chunk> chunks_of(std::span<const AttentionRows<S>> sequences) {
  static_assert(kRowChunk % kTile == 0);
  std::vector<Chunk> chunks;
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    for (int r = 0; r < sequences[s].rows;) {
      const int end = std::min(sequences[s].rows, r + kRowChunk - (sequences[s].past + r) % kRowChunk);
      chunks.push_back({s, r, end});
      r = end;
    }
  }
  return chunks;
}

/// Memory of one task, kept by its thread from call to call.
template <class T>
T* scratch(std::size_t slot, std::size_t size) {
  thread_local std::vector<T> memory[10];
  if (memory[slot].size() < size) memory[slot].resize(size);
  return memory[slot].data();
}

template <class S>
void attend_chunk(const AttentionLayer<Computed<S>>& layer, const AttentionRows<S>& rows, const Chunk& chunk,
                  int kv_head, const Computed<S>* queries, S* out) {
  using T = Computed<S>;
  const KernelTable<T>& kernels = kernel_table<T>();
  const StorageTable<S>& storage = storage_table<S>();
  const int group = layer.heads / layer.kv_heads;
  const int dim = layer.dim;
  const int tiles = tiles_of(rows.past + chunk.end);
  const std::int64_t head_offset = static_cast<std::int64_t>(kv_head) * dim * kTile;
  thread_local std::vector<const S*> key_tiles, value_tiles;
  key_tiles.resize(tiles);
  value_tiles.resize(tiles);
  for (std::size_t t = 0; t < key_tiles.size(); ++t) {
    key_tiles[t] = rows.key_blocks[t] + head_offset;
    value_tiles[t] = rows.value_blocks[t] + head_offset;
  }
  const std::int64_t scores_row = static_cast<std::int64_t>(tiles) * kTile;
  T* scores = scratch<T>(0, kQueries * scores_row);
  T* query = scratch<T>(1, kQueries * dim);
  T* result = scratch<T>(2, kQueries * dim);

  const int total = (chunk.end - chunk.begin) * group;
  for (int first = 0; first < total; first += kQueries) {
    const int count = std::min(kQueries, total - first);
    const auto place = [&](int i) {  // of query i in [T, heads * dim]
      const int row = chunk.begin + (first + i) / group;
      const int head = kv_head * group + (first + i) % group;
      return (rows.begin + row) * layer.heads * dim + static_cast<std::int64_t>(head) * dim;
    };
    const int needed = tiles_of(rows.past + chunk.begin + (first + count - 1) / group + 1);
    for (int i = 0; i < count; ++i) std::copy_n(queries + place(i), dim, query + i * dim);
    storage.scores(count, needed, dim, query, dim, key_tiles.data(), layer.scale, scores, scores_row);
    for (int i = 0; i < count; ++i) {
      const int visible = rows.past + chunk.begin + (first + i) / group + 1;
      kernels.softmax(scores + i * scores_row, visible);
      std::fill(scores + i * scores_row + tiles_of(visible) * kTile, scores + i * scores_row + needed * kTile, T(0));
    }
    storage.weighted_values(count, needed, dim, scores, scores_row, value_tiles.data(), result, dim);
    for (int i = 0; i < count; ++i) store_row<S>(dim, result + i * dim, out + place(i));
  }
}

}  // namespace

template <class S>
void attention_forward(const AttentionLayer<Computed<S>>& layer, const S* qkv, const std::int64_t* positions,
                       std::span<const AttentionRows<S>> given, S* out) {
  using T = Computed<S>;
  const OwnedBlocks<S> blocks(layer, given);
  const auto chunks = chunks_of<S>(blocks.sequences);
  const int dim = layer.dim;
  std::int64_t total_rows = 0;
  for (const auto& rows : given) total_rows = std::max(total_rows, rows.begin + rows.rows);
  std::vector<T> queries(static_cast<std::size_t>(total_rows) * static_cast<std::size_t>(layer.heads * dim));

  kernel_pool().run(static_cast<std::int64_t>(chunks.size()), [&](std::int64_t c) {
    const Chunk& chunk = chunks[c];
    const AttentionRows<S>& rows = blocks.sequences[chunk.sequence];
    T* normed = scratch<T>(0, dim);
    T* key = scratch<T>(1, dim);
    for (int r = chunk.begin; r < chunk.end; ++r) {
      const std::int64_t row = rows.begin + r;
      const S* x = qkv + row * layer.width();
      for (int h = 0; h < layer.heads; ++h)
        position_head<S>(layer, layer.query_norm, positions[row], x + h * dim, normed,
                         queries.data() + (row * layer.heads + h) * dim);
      const auto block = static_cast<std::size_t>((rows.past + r) / kTile);
      for (int h = 0; h < layer.kv_heads; ++h) {
        position_head<S>(layer, layer.key_norm, positions[row], x + (layer.heads + h) * dim, normed, key);
        write_key_value<S>(layer, key, x + (layer.heads + layer.kv_heads + h) * dim, h, rows.past + r,
                           rows.key_blocks[block], rows.value_blocks[block]);
      }
    }
  });

  const auto tasks = static_cast<std::int64_t>(chunks.size()) * layer.kv_heads;
  kernel_pool().run(tasks, [&](std::int64_t task) {
    const Chunk& chunk = chunks[task / layer.kv_heads];
    attend_chunk<S>(layer, blocks.sequences[chunk.sequence], chunk, static_cast<int>(task % layer.kv_heads),
                    queries.data(), out);
  });
}

namespace {

/// What the gradient of one sequence and one key-value head works on.
template <class S>
struct BackwardInputs {
  const AttentionLayer<Computed<S>>* layer = nullptr;
  const S* qkv = nullptr;
  const std::int64_t* positions = nullptr;
  const AttentionRows<S>* rows = nullptr;
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
      : in_(in),
        layer_(*in.layer),
        rows_(*in.rows),
        kv_head_(in.kv_head),
        dim_(layer_.dim),
        group_(layer_.heads / layer_.kv_heads),
        tiles_(tiles_of(rows_.rows)),
        padded_(static_cast<std::int64_t>(tiles_) * kTile) {}

  void run();

 private:
  void load_keys_and_values();
  void query_group(int first, int count);
  void write_key_gradients();
  void head_gradient(const T* dy, const T* norm, std::int64_t row, const S* x, S* dx, T* dnorm);
  const S* row_of(int r) const { return in_.qkv + (rows_.begin + r) * layer_.width(); }

  BackwardInputs<S> in_;
  const AttentionLayer<T>& layer_;
  const AttentionRows<S>& rows_;
  int kv_head_, dim_, group_, tiles_;
  std::int64_t padded_;
  T *key_columns_ = nullptr, *key_rows_ = nullptr, *value_columns_ = nullptr, *dkey_ = nullptr, *dvalue_ = nullptr;
  std::vector<const T*> key_column_tiles_, key_row_tiles_, value_column_tiles_;
};

template <class S>
void BackwardTask<S>::run() {
  load_keys_and_values();
  const int total = rows_.rows * group_;
  for (int first = 0; first < total; first += kQueries) query_group(first, std::min(kQueries, total - first));
  write_key_gradients();
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
  for (int r = 0; r < rows_.rows; ++r) {
    T* key = key_rows_ + static_cast<std::int64_t>(r) * dim_;
    position_head<S>(layer_, layer_.key_norm, in_.positions[rows_.begin + r],
                     row_of(r) + (layer_.heads + kv_head_) * dim_, normed, key);
    const S* value = row_of(r) + (layer_.heads + layer_.kv_heads + kv_head_) * dim_;
    const std::int64_t column = static_cast<std::int64_t>(r / kTile) * kTile * dim_ + r % kTile;
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

template <class S>
void BackwardTask<S>::query_group(int first, int count) {
  const KernelTable<T>& kernels = kernel_table<T>();
  const StorageTable<T>& wide = storage_table<T>();
  const int needed = tiles_of((first + count - 1) / group_ + 1);
  T* probability = scratch<T>(6, kQueries * padded_);
  T* dscore = scratch<T>(7, kQueries * padded_);
  T* query = scratch<T>(8, 3 * kQueries * dim_);
  T* gradient = query + kQueries * dim_;  // of the output
  T* dquery = gradient + kQueries * dim_;
  T* normed = scratch<T>(5, dim_);
  const auto row = [&](int i) { return (first + i) / group_; };
  const auto head = [&](int i) { return kv_head_ * group_ + (first + i) % group_; };
  const auto place = [&](int i) { return ((rows_.begin + row(i)) * layer_.heads + head(i)) * dim_; };

  for (int i = 0; i < count; ++i) {
    position_head<S>(layer_, layer_.query_norm, in_.positions[rows_.begin + row(i)], row_of(row(i)) + head(i) * dim_,
                     normed, query + i * dim_);
    copy_wide<S>(dim_, in_.dout + place(i), gradient + i * dim_);
  }
  wide.scores(count, needed, dim_, query, dim_, key_column_tiles_.data(), layer_.scale, probability, padded_);
  wide.scores(count, needed, dim_, gradient, dim_, value_column_tiles_.data(), T(1), dscore, padded_);
  for (int i = 0; i < count; ++i) {
    T* p = probability + i * padded_;
    T* ds = dscore + i * padded_;
    const int visible = row(i) + 1;
    kernels.softmax(p, visible);
    std::fill(p + visible, p + needed * kTile, T(0));
    const T inner = kernels.dot(dim_, gradient + i * dim_, wide_row<S>(dim_, in_.out + place(i), normed));
    for (int j = 0; j < visible; ++j) ds[j] = p[j] * (ds[j] - inner) * layer_.scale;
    std::fill(ds + visible, ds + needed * kTile, T(0));
  }
  const int keys = row(count - 1) + 1;
  wide.weighted_values(count, needed, dim_, dscore, padded_, key_row_tiles_.data(), dquery, dim_);
  kernels.add_outer(count, keys, dim_, dscore, padded_, query, dim_, dkey_);
  kernels.add_outer(count, keys, dim_, probability, padded_, gradient, dim_, dvalue_);
  for (int i = 0; i < count; ++i)
    head_gradient(dquery + i * dim_, layer_.query_norm, rows_.begin + row(i), row_of(row(i)) + head(i) * dim_,
                  in_.dqkv + (rows_.begin + row(i)) * layer_.width() + head(i) * dim_, in_.dquery_norm);
}

template <class S>
void BackwardTask<S>::write_key_gradients() {
  for (int r = 0; r < rows_.rows; ++r) {
    const std::int64_t row = rows_.begin + r;
    S* out_row = in_.dqkv + row * layer_.width();
    head_gradient(dkey_ + static_cast<std::int64_t>(r) * dim_, layer_.key_norm, row,
                  row_of(r) + (layer_.heads + kv_head_) * dim_, out_row + (layer_.heads + kv_head_) * dim_,
                  in_.dkey_norm);
    store_row<S>(dim_, dvalue_ + static_cast<std::int64_t>(r) * dim_,
                 out_row + (layer_.heads + layer_.kv_heads + kv_head_) * dim_);
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

}  // namespace

template <class S>
void attention_backward(const AttentionLayer<Computed<S>>& layer, const S* qkv, const std::int64_t* positions,
                        std::span<const AttentionRows<S>> sequences, const S* out, const S* dout, S* dqkv,
                        Computed<S>* dquery_norm, Computed<S>* dkey_norm) {
  using T = Computed<S>;
  const bool norms = layer.query_norm != nullptr;
  const std::size_t tasks = sequences.size() * static_cast<std::size_t>(layer.kv_heads);
  const auto dim = static_cast<std::size_t>(layer.dim);
  std::vector<T> norm_sums(norms ? 2 * tasks * dim : 0);
  kernel_pool().run(static_cast<std::int64_t>(tasks), [&](std::int64_t index) {
    const auto task = static_cast<std::size_t>(index);
    const auto kv_heads = static_cast<std::size_t>(layer.kv_heads);
    T* sums = norms ? norm_sums.data() + 2 * task * dim : nullptr;
    BackwardTask<S>({.layer = &layer,
                     .qkv = qkv,
                     .positions = positions,
                     .rows = &sequences[task / kv_heads],
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
                                     std::span<const AttentionRows<S>>, S*);                                   \
  template void attention_backward<S>(const AttentionLayer<Computed<S>>&, const S*, const std::int64_t*,       \
                                      std::span<const AttentionRows<S>>, const S*, const S*, S*, Computed<S>*, \
                                      Computed<S>*);
CARNOT_INSTANTIATE(float)
CARNOT_INSTANTIATE(double)
CARNOT_INSTANTIATE(BFloat16)

}  // namespace carnot::kernel
