#include <algorithm>
#include <cmath>
#include <vector>

#include "carnot/core/base/thread_pool.h"
#include "carnot/core/kernel/attention/attention.h"
#include "carnot/core/kernel/attention/attention_rows.h"
#include "carnot/core/kernel/sequence_trees.h"

namespace carnot::kernel {
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
  tree_dkey_ = scratch<T>(Scratch::TreeKeyGradient, static_cast<std::size_t>(rows * dim_));
  tree_dvalue_ = scratch<T>(Scratch::TreeValueGradient, static_cast<std::size_t>(rows * dim_));
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
  key_columns_ = scratch<T>(Scratch::KeyColumns, size);
  key_rows_ = scratch<T>(Scratch::KeyRows, size);
  value_columns_ = scratch<T>(Scratch::ValueColumns, size);
  dkey_ = scratch<T>(Scratch::KeyGradient, size);
  dvalue_ = scratch<T>(Scratch::ValueGradient, size);
  for (T* memory : {key_columns_, key_rows_, value_columns_, dkey_, dvalue_}) std::fill(memory, memory + size, T(0));
  T* normed = scratch<T>(Scratch::Normed, dim_);
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
  const int seen = layer_.first_visible(rows_.past + first / group_ + 1) / kTile, tiles = needed - seen;
  T* probability = scratch<T>(Scratch::Probability, kQueriesOfPass * padded_);
  T* dscore = scratch<T>(Scratch::ScoreGradient, kQueriesOfPass * padded_);
  T* query = scratch<T>(Scratch::Query, 3 * kQueriesOfPass * dim_);
  T* gradient = query + kQueriesOfPass * dim_;  // of the output
  T* dquery = gradient + kQueriesOfPass * dim_;
  T* normed = scratch<T>(Scratch::Normed, dim_);
  const auto row = [&](int i) { return (first + i) / group_; };
  const auto head = [&](int i) { return kv_head_ * group_ + (first + i) % group_; };
  const auto place = [&](int i) { return ((rows_.begin + row(i)) * layer_.heads + head(i)) * dim_; };

  for (int i = 0; i < count; ++i) {
    position_query<S>(layer_, in_.positions[rows_.begin + row(i)], row_of(rows_.begin + row(i)) + head(i) * dim_,
                      normed, query + i * dim_);
    for (int d = 0; d < dim_; ++d) query[i * dim_ + d] = widened(stored<S>(query[i * dim_ + d]));
    copy_wide<S>(dim_, in_.dout + place(i), gradient + i * dim_);
  }
  kernels.scores(count, tiles, dim_, query, dim_, key_column_tiles_.data() + seen, layer_.scale, probability, padded_);
  kernels.scores(count, tiles, dim_, gradient, dim_, value_column_tiles_.data() + seen, T(1), dscore, padded_);
  for (int i = 0; i < count; ++i) {
    T* p = probability + i * padded_;
    T* ds = dscore + i * padded_;
    // From here on, positions are counted from the first block that the group sees.
    const int visible = rows_.past + row(i) + 1 - seen * kTile;
    const int unseen = layer_.first_visible(rows_.past + row(i) + 1) - seen * kTile, begin = unseen / kTile * kTile;
    std::fill(p + begin, p + unseen, T(-INFINITY));
    kernels.softmax(p + begin, visible - begin);
    std::fill(p, p + begin, T(0));
    std::fill(p + visible, p + tiles * kTile, T(0));
    const T inner = kernels.dot(dim_, gradient + i * dim_, wide_row<S>(dim_, in_.out + place(i), normed));
    for (int j = 0; j < visible; ++j) ds[j] = p[j] * (ds[j] - inner) * layer_.scale;
    std::fill(ds + visible, ds + tiles * kTile, T(0));
  }
  const int keys = rows_.past + row(count - 1) + 1 - seen * kTile;
  const std::int64_t first_key = static_cast<std::int64_t>(seen) * kTile * dim_;
  kernels.weighted_values(count, tiles, dim_, dscore, padded_, key_row_tiles_.data() + seen, dquery, dim_, false);
  kernels.add_outer(count, keys, dim_, dscore, padded_, query, dim_, dkey_ + first_key);
  kernels.add_outer(count, keys, dim_, probability, padded_, gradient, dim_, dvalue_ + first_key);
  for (int i = 0; i < count; ++i) {
    const std::int64_t place_of_row = rows_.begin + row(i);
    scale_query(layer_, in_.positions[place_of_row], dquery + i * dim_);
    head_gradient(dquery + i * dim_, layer_.query_norm, place_of_row, row_of(place_of_row) + head(i) * dim_,
                  in_.dqkv + place_of_row * layer_.width() + head(i) * dim_, in_.dquery_norm);
  }
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
  T* turned = scratch<T>(Scratch::Turned, 4 * dim_);
  T *normed = turned + dim_, *wide_x = normed + dim_, *wide_dx = wide_x + dim_;
  rotate_head(layer_, in_.positions[row], T(-1), dy, turned);
  if (norm == nullptr) return store_row<S>(dim_, turned, dx);
  const T* values = wide_row<S>(dim_, x, wide_x);
  const T factor = wide.rms_norm(dim_, values, norm, T(0), layer_.norm_epsilon, normed);
  wide.rms_norm_backward(dim_, turned, values, norm, T(0), factor, wide_dx, dnorm);
  store_row<S>(dim_, wide_dx, dx);
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
  template void attention_backward<S>(const AttentionLayer<Computed<S>>&, const S*, const std::int64_t*,       \
                                      std::span<const AttentionRows<S>>, const S*, const S*, S*, Computed<S>*, \
                                      Computed<S>*);
CARNOT_INSTANTIATE(float)
CARNOT_INSTANTIATE(double)
CARNOT_INSTANTIATE(BFloat16)

}  // namespace carnot::kernel
