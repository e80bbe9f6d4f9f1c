#include "carnot/kernel/attention/attention.h"

#include <algorithm>
#include <vector>

#include "carnot/base/check.h"
#include "carnot/base/thread_pool.h"
#include "carnot/kernel/dispatch.h"

namespace carnot::kernel {
namespace {

constexpr int kQueries = 4;    // queries that share a pass over the keys
constexpr int kRowChunk = 32;  // rows of one task

int tiles_of(int positions) { return (positions + kTile - 1) / kTile; }

/// One head's query or key of one row: normalised where asked, rotated.
template <class T>
void position_head(const AttentionLayer<T>& layer, const T* norm, std::int64_t position, const T* x, T* scratch, T* y) {
  const KernelTable<T>& kernels = kernel_table<T>();
  if (norm != nullptr) {
    kernels.rms_norm(layer.dim, x, norm, layer.norm_epsilon, scratch);
    x = scratch;
  }
  const int half = layer.dim / 2;
  kernels.rotate(half, layer.cosine + position * half, layer.sine + position * half, T(1), x, y);
}

template <class T>
void write_key_value(const AttentionLayer<T>& layer, const T* key, const T* value, int kv_head, int position,
                     T* key_block, T* value_block) {
  const int slot = position % kTile;
  T* keys = key_block + static_cast<std::int64_t>(kv_head) * layer.dim * kTile;
  T* values = value_block + static_cast<std::int64_t>(kv_head) * layer.dim * kTile;
  // A reused block may hold anything; weight 0 times anything must be 0.
  if (slot == 0) std::fill(values, values + static_cast<std::int64_t>(kTile) * layer.dim, T(0));
  for (int d = 0; d < layer.dim; ++d) keys[d * kTile + slot] = key[d];
  std::copy(value, value + layer.dim, values + static_cast<std::int64_t>(slot) * layer.dim);
}

/// Sequences with blocks of their own where the caller gave none.
template <class T>
struct OwnedBlocks {
  std::vector<T> memory;
  std::vector<T*> keys, values;
  std::vector<AttentionRows<T>> sequences;

  OwnedBlocks(const AttentionLayer<T>& layer, std::span<const AttentionRows<T>> given)
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
      sequence.key_blocks = std::span<T* const>(keys).subspan(next, count);
      sequence.value_blocks = std::span<T* const>(values).subspan(next, count);
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
template <class T>
std::vector<Chunk> chunks_of(std::span<const AttentionRows<T>> sequences) {
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

template <class T>
void attend_chunk(const AttentionLayer<T>& layer, const AttentionRows<T>& rows, const Chunk& chunk, int kv_head,
                  const T* queries, T* out) {
  const KernelTable<T>& kernels = kernel_table<T>();
  const int group = layer.heads / layer.kv_heads;
  const int dim = layer.dim;
  const int tiles = tiles_of(rows.past + chunk.end);
  const std::int64_t head_offset = static_cast<std::int64_t>(kv_head) * dim * kTile;
  thread_local std::vector<const T*> key_tiles, value_tiles;
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
    kernels.scores(count, needed, dim, query, dim, key_tiles.data(), layer.scale, scores, scores_row);
    for (int i = 0; i < count; ++i) {
      const int visible = rows.past + chunk.begin + (first + i) / group + 1;
      kernels.softmax(scores + i * scores_row, visible);
      std::fill(scores + i * scores_row + tiles_of(visible) * kTile, scores + i * scores_row + needed * kTile, T(0));
    }
    kernels.weighted_values(count, needed, dim, scores, scores_row, value_tiles.data(), result, dim);
    for (int i = 0; i < count; ++i) std::copy_n(result + i * dim, dim, out + place(i));
  }
}

}  // namespace

template <class T>
void attention_forward(const AttentionLayer<T>& layer, const T* qkv, const std::int64_t* positions,
                       std::span<const AttentionRows<T>> given, T* out) {
  const OwnedBlocks<T> blocks(layer, given);
  const auto chunks = chunks_of<T>(blocks.sequences);
  const int dim = layer.dim;
  std::int64_t total_rows = 0;
  for (const auto& rows : given) total_rows = std::max(total_rows, rows.begin + rows.rows);
  std::vector<T> queries(static_cast<std::size_t>(total_rows) * static_cast<std::size_t>(layer.heads * dim));

  kernel_pool().run(static_cast<std::int64_t>(chunks.size()), [&](std::int64_t c) {
    const Chunk& chunk = chunks[c];
    const AttentionRows<T>& rows = blocks.sequences[chunk.sequence];
    T* normed = scratch<T>(0, dim);
    T* key = scratch<T>(1, dim);
    for (int r = chunk.begin; r < chunk.end; ++r) {
      const std::int64_t row = rows.begin + r;
      const T* x = qkv + row * layer.width();
      for (int h = 0; h < layer.heads; ++h)
        position_head(layer, layer.query_norm, positions[row], x + h * dim, normed,
                      queries.data() + (row * layer.heads + h) * dim);
      const auto block = static_cast<std::size_t>((rows.past + r) / kTile);
      for (int h = 0; h < layer.kv_heads; ++h) {
        position_head(layer, layer.key_norm, positions[row], x + (layer.heads + h) * dim, normed, key);
        write_key_value(layer, key, x + (layer.heads + layer.kv_heads + h) * dim, h, rows.past + r,
                        rows.key_blocks[block], rows.value_blocks[block]);
      }
    }
  });

  const auto tasks = static_cast<std::int64_t>(chunks.size()) * layer.kv_heads;
  kernel_pool().run(tasks, [&](std::int64_t task) {
    const Chunk& chunk = chunks[task / layer.kv_heads];
    attend_chunk(layer, blocks.sequences[chunk.sequence], chunk, static_cast<int>(task % layer.kv_heads),
                 queries.data(), out);
  });
}

namespace {

/// What the gradient of one sequence and one key-value head works on.
template <class T>
struct BackwardInputs {
  const AttentionLayer<T>* layer = nullptr;
  const T* qkv = nullptr;
  const std::int64_t* positions = nullptr;
  const AttentionRows<T>* rows = nullptr;
  int kv_head = 0;
  const T* out = nullptr;
  const T* dout = nullptr;
  T* dqkv = nullptr;
  T* dquery_norm = nullptr;  // this task's own sums, or null
  T* dkey_norm = nullptr;
};

template <class T>
class BackwardTask {
 public:
  explicit BackwardTask(const BackwardInputs<T>& in)
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
  void head_gradient(const T* dy, const T* norm, std::int64_t row, const T* x, T* dx, T* dnorm);
  const T* row_of(int r) const { return in_.qkv + (rows_.begin + r) * layer_.width(); }

  BackwardInputs<T> in_;
  const AttentionLayer<T>& layer_;
  const AttentionRows<T>& rows_;
  int kv_head_, dim_, group_, tiles_;
  std::int64_t padded_;
  T *key_columns_ = nullptr, *key_rows_ = nullptr, *value_columns_ = nullptr, *dkey_ = nullptr, *dvalue_ = nullptr;
  std::vector<const T*> key_column_tiles_, key_row_tiles_, value_column_tiles_;
};

template <class T>
void BackwardTask<T>::run() {
  load_keys_and_values();
  const int total = rows_.rows * group_;
  for (int first = 0; first < total; first += kQueries) query_group(first, std::min(kQueries, total - first));
  write_key_gradients();
}

template <class T>
void BackwardTask<T>::load_keys_and_values() {
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
    position_head(layer_, layer_.key_norm, in_.positions[rows_.begin + r], row_of(r) + (layer_.heads + kv_head_) * dim_,
                  normed, key);
    const T* value = row_of(r) + (layer_.heads + layer_.kv_heads + kv_head_) * dim_;
    const std::int64_t column = static_cast<std::int64_t>(r / kTile) * kTile * dim_ + r % kTile;
    for (int d = 0; d < dim_; ++d) {
      key_columns_[column + d * kTile] = key[d];
      value_columns_[column + d * kTile] = value[d];
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

template <class T>
void BackwardTask<T>::query_group(int first, int count) {
  const KernelTable<T>& kernels = kernel_table<T>();
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
    position_head(layer_, layer_.query_norm, in_.positions[rows_.begin + row(i)], row_of(row(i)) + head(i) * dim_,
                  normed, query + i * dim_);
    std::copy_n(in_.dout + place(i), dim_, gradient + i * dim_);
  }
  kernels.scores(count, needed, dim_, query, dim_, key_column_tiles_.data(), layer_.scale, probability, padded_);
  kernels.scores(count, needed, dim_, gradient, dim_, value_column_tiles_.data(), T(1), dscore, padded_);
  for (int i = 0; i < count; ++i) {
    T* p = probability + i * padded_;
    T* ds = dscore + i * padded_;
    const int visible = row(i) + 1;
    kernels.softmax(p, visible);
    std::fill(p + visible, p + needed * kTile, T(0));
    const T inner = kernels.dot(dim_, gradient + i * dim_, in_.out + place(i));
    for (int j = 0; j < visible; ++j) ds[j] = p[j] * (ds[j] - inner) * layer_.scale;
    std::fill(ds + visible, ds + needed * kTile, T(0));
  }
  const int keys = row(count - 1) + 1;
  kernels.weighted_values(count, needed, dim_, dscore, padded_, key_row_tiles_.data(), dquery, dim_);
  kernels.add_outer(count, keys, dim_, dscore, padded_, query, dim_, dkey_);
  kernels.add_outer(count, keys, dim_, probability, padded_, gradient, dim_, dvalue_);
  for (int i = 0; i < count; ++i)
    head_gradient(dquery + i * dim_, layer_.query_norm, rows_.begin + row(i), row_of(row(i)) + head(i) * dim_,
                  in_.dqkv + (rows_.begin + row(i)) * layer_.width() + head(i) * dim_, in_.dquery_norm);
}

template <class T>
void BackwardTask<T>::write_key_gradients() {
  for (int r = 0; r < rows_.rows; ++r) {
    const std::int64_t row = rows_.begin + r;
    T* out_row = in_.dqkv + row * layer_.width();
    head_gradient(dkey_ + static_cast<std::int64_t>(r) * dim_, layer_.key_norm, row,
                  row_of(r) + (layer_.heads + kv_head_) * dim_, out_row + (layer_.heads + kv_head_) * dim_,
                  in_.dkey_norm);
    std::copy_n(dvalue_ + static_cast<std::int64_t>(r) * dim_, dim_,
                out_row + (layer_.heads + layer_.kv_heads + kv_head_) * dim_);
  }
}

template <class T>
void BackwardTask<T>::head_gradient(const T* dy, const T* norm, std::int64_t row, const T* x, T* dx, T* dnorm) {
  const KernelTable<T>& kernels = kernel_table<T>();
  const int half = dim_ / 2;
  const T* cosine = layer_.cosine + in_.positions[row] * half;
  const T* sine = layer_.sine + in_.positions[row] * half;
  if (norm == nullptr) {
    kernels.rotate(half, cosine, sine, T(-1), dy, dx);
    return;
  }
  T* turned = scratch<T>(9, 2 * dim_);
  kernels.rotate(half, cosine, sine, T(-1), dy, turned);
  const T factor = kernels.rms_norm(dim_, x, norm, layer_.norm_epsilon, turned + dim_);
  kernels.rms_norm_backward(dim_, turned, x, norm, factor, dx, dnorm);
}

}  // namespace

template <class T>
void attention_backward(const AttentionLayer<T>& layer, const T* qkv, const std::int64_t* positions,
                        std::span<const AttentionRows<T>> sequences, const T* out, const T* dout, T* dqkv,
                        T* dquery_norm, T* dkey_norm) {
  const bool norms = layer.query_norm != nullptr;
  const std::size_t tasks = sequences.size() * static_cast<std::size_t>(layer.kv_heads);
  const auto dim = static_cast<std::size_t>(layer.dim);
  std::vector<T> norm_sums(norms ? 2 * tasks * dim : 0);
  kernel_pool().run(static_cast<std::int64_t>(tasks), [&](std::int64_t index) {
    const auto task = static_cast<std::size_t>(index);
    const auto kv_heads = static_cast<std::size_t>(layer.kv_heads);
    T* sums = norms ? norm_sums.data() + 2 * task * dim : nullptr;
    BackwardTask<T>({.layer = &layer,
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
    kernel_table<T>().add(layer.dim, norm_sums.data() + 2 * task * dim, dquery_norm);
    kernel_table<T>().add(layer.dim, norm_sums.data() + (2 * task + 1) * dim, dkey_norm);
  }
}

#define CARNOT_INSTANTIATE(T)                                                               \
  template void attention_forward(const AttentionLayer<T>&, const T*, const std::int64_t*,  \
                                  std::span<const AttentionRows<T>>, T*);                   \
  template void attention_backward(const AttentionLayer<T>&, const T*, const std::int64_t*, \
                                   std::span<const AttentionRows<T>>, const T*, const T*, T*, T*, T*);
CARNOT_INSTANTIATE(float)
CARNOT_INSTANTIATE(double)

}  // namespace carnot::kernel
