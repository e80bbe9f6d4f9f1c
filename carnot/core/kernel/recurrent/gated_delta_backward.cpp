#include <algorithm>
#include <vector>

#include "carnot/core/base/check.h"
#include "carnot/core/base/thread_pool.h"
#include "carnot/core/kernel/recurrent/gated_delta.h"
#include "carnot/core/kernel/recurrent/gated_delta_rows.h"

namespace carnot::kernel {
namespace {

/// What the tasks of one call share.
template <class S>
struct DeltaBackwardCall {
  const GatedDeltaLayer<Computed<S>>& layer;
  const GatedDeltaInput<S>& in;
  const S* dout;
  const GatedDeltaGradient<S>& gradient;
};
/// Gradients of a head's parameters.
template <class T>
struct DeltaParameterSums {
  T log_rate = 0, step_bias = 0;
};

/// Memory of one task, which its thread keeps between calls.
template <class S>
struct DeltaBackwardMemory {
  using T = Computed<S>;
  // Of a tree: gradients of unit queries and keys, summed over value heads.
  NumberRows<T> dqueries{}, dkeys{};
  // Of a tree and value head: the state at the end of each segment that another one continues, and its gradient, which
  // takes the state's place once nothing reads it.
  NumberRows<T> states{};
  std::vector<T*> ends{}, dends{};
  // Of a segment and value head.
  GatedDeltaRows<S> rows{};
  NumberRows<T> douts{}, dvalues{}, ddecays{}, dbetas{};
  // Of a panel: the state before each row and behind the last one, residuals, the gradient of the state.
  NumberRows<T> history{}, residuals{}, dstate{};
};

/// One key head of one tree, value head by value head.
template <class S>
class DeltaBackwardTask {
  using T = Computed<S>;

 public:
  DeltaBackwardTask(const DeltaBackwardCall<S>& call, const RecurrentTree& tree, int key_head)
      : call_(call), layer_(call.layer), tree_(tree), key_head_(key_head), memory_(memory_of_thread()) {}

  /// `sums`: of the layer's value heads.
  void run(DeltaParameterSums<T>* sums) {
    memory_.dqueries.resize_to_zeros(tree_.rows, padded_key(layer_));
    memory_.dkeys.resize_to_zeros(tree_.rows, padded_key(layer_));
    const int group = layer_.value_heads / layer_.key_heads;
    for (head_ = key_head_ * group; head_ < (key_head_ + 1) * group; ++head_) {
      place_states();
      keep_states();
      for (std::size_t s = tree_.segments.size(); s-- > 0;) segment_backward(s, sums[head_]);
    }
    write_key_gradients();
  }

 private:
  static DeltaBackwardMemory<S>& memory_of_thread() {
    thread_local DeltaBackwardMemory<S> memory;
    return memory;
  }

  void place_states();
  void keep_states();
  void segment_backward(std::size_t number, DeltaParameterSums<T>& sums);
  void panel_backward(std::size_t number, int panel);
  void pass_on(const RecurrentSegment& segment, int panel);
  void write_gradients(const RecurrentSegment& segment, DeltaParameterSums<T>& sums);
  void write_key_gradients();

  static void copy_or_clear(const T* from, std::int64_t count, T* to) {
    if (from == nullptr) {
      std::fill_n(to, count, T(0));
    } else {
      std::copy_n(from, count, to);
    }
  }
  T* end_of(int segment) const { return segment < 0 ? nullptr : memory_.ends[static_cast<std::size_t>(segment)]; }
  std::int64_t panel_size() const { return std::int64_t{layer_.key_dim} * kDeltaColumns<T>; }

  DeltaBackwardCall<S> call_;
  const GatedDeltaLayer<T>& layer_;
  const RecurrentTree& tree_;
  int key_head_;
  int head_ = 0;  // the value head
  DeltaBackwardMemory<S>& memory_;
};

/// States that several segments start from stay until the first of them is done, their gradients begin with the last.
template <class S>
void DeltaBackwardTask<S>::place_states() {
  std::int64_t places = 0;
  for (const RecurrentSegment& segment : tree_.segments) places += std::min(segment.successors, 2);
  memory_.states.resize(places, layer_.head_state());
  memory_.ends.clear();
  memory_.dends.clear();
  std::int64_t used = 0;
  for (const RecurrentSegment& segment : tree_.segments) {
    memory_.ends.push_back(segment.successors > 0 ? memory_.states.at(used++) : nullptr);
    memory_.dends.push_back(segment.successors > 1 ? memory_.states.at(used++) : memory_.ends.back());
  }
}

template <class S>
void DeltaBackwardTask<S>::keep_states() {
  const KernelTable<T>& kernels = kernel_table<T>();
  T residual[kDeltaColumns<T>], out[kDeltaColumns<T>];
  for (std::size_t s = 0; s < tree_.segments.size(); ++s) {
    const RecurrentSegment& segment = tree_.segments[s];
    if (segment.successors == 0) continue;
    T* state = memory_.ends[s];
    copy_or_clear(end_of(segment.before), layer_.head_state(), state);
    memory_.rows.load(layer_, call_.in, segment, head_);
    for (int p = 0; p < layer_.panels(); ++p, state += panel_size())
      for (int r = 0; r < segment.rows; ++r)
        kernels.delta_step(memory_.rows.step(r, state), memory_.rows.value(r) + p * kDeltaColumns<T>, state, residual,
                           out);
  }
}

template <class S>
void DeltaBackwardTask<S>::segment_backward(std::size_t number, DeltaParameterSums<T>& sums) {
  const RecurrentSegment& segment = tree_.segments[number];
  const int columns = layer_.panels() * kDeltaColumns<T>;
  memory_.rows.load(layer_, call_.in, segment, head_);
  memory_.douts.resize_to_zeros(segment.rows, columns);
  memory_.dvalues.resize(segment.rows, columns);
  memory_.ddecays.resize_to_zeros(segment.rows, 1);
  memory_.dbetas.resize_to_zeros(segment.rows, 1);
  for (int r = 0; r < segment.rows; ++r)
    copy_wide<S>(layer_.value_dim, call_.dout + ((segment.begin + r) * layer_.value_heads + head_) * layer_.value_dim,
                 memory_.douts.at(r));
  for (int p = 0; p < layer_.panels(); ++p) panel_backward(number, p);
  write_gradients(segment, sums);
}

template <class S>
void DeltaBackwardTask<S>::panel_backward(std::size_t number, int panel) {
  const KernelTable<T>& kernels = kernel_table<T>();
  const RecurrentSegment& segment = tree_.segments[number];
  const int column = panel * kDeltaColumns<T>;
  DeltaBackwardMemory<S>& memory = memory_;
  T out[kDeltaColumns<T>];
  memory.history.resize(segment.rows + 1, panel_size());
  memory.residuals.resize(segment.rows, kDeltaColumns<T>);
  memory.dstate.resize(1, panel_size());
  const std::int64_t place = panel * panel_size();
  const T* start = end_of(segment.before);
  copy_or_clear(start == nullptr ? nullptr : start + place, panel_size(), memory.history.at(0));
  for (int r = 0; r < segment.rows; ++r)
    kernels.delta_step(memory.rows.step(r, memory.history.at(r)), memory.rows.value(r) + column,
                       memory.history.at(r + 1), memory.residuals.at(r), out);
  const T* dend = memory.dends[number];
  copy_or_clear(dend == nullptr ? nullptr : dend + place, panel_size(), memory.dstate.at(0));
  for (int r = segment.rows; r-- > 0;)
    kernels.delta_step_backward(memory.rows.step(r, memory.history.at(r)), memory.residuals.at(r),
                                memory.douts.at(r) + column, memory.dstate.at(0), memory.dvalues.at(r) + column,
                                {.query = memory.dqueries.at(segment.in_tree + r),
                                 .key = memory.dkeys.at(segment.in_tree + r),
                                 .decay = memory.ddecays.at(r),
                                 .beta = memory.dbetas.at(r)});
  pass_on(segment, panel);
}

/// To the state that the segment started from. Its last successor comes first.
template <class S>
void DeltaBackwardTask<S>::pass_on(const RecurrentSegment& segment, int panel) {
  if (segment.before < 0) return;
  T* to = memory_.dends[static_cast<std::size_t>(segment.before)] + panel * panel_size();
  if (segment.last_behind) {
    std::copy_n(memory_.dstate.at(0), panel_size(), to);
  } else {
    storage_table<T>().add(panel_size(), memory_.dstate.at(0), to);
  }
}

template <class S>
void DeltaBackwardTask<S>::write_gradients(const RecurrentSegment& segment, DeltaParameterSums<T>& sums) {
  for (int r = segment.rows; r-- > 0;) {
    const std::int64_t row = segment.begin + r, gate = row * layer_.value_heads + head_;
    const DeltaGates<T>& gates = memory_.rows.gates(r);
    const T dlog_decay = *memory_.ddecays.at(r) * gates.decay, da = dlog_decay * gates.slope;
    sums.log_rate += dlog_decay * gates.log_decay;
    sums.step_bias += da;
    call_.gradient.a[gate] = stored<S>(da);
    call_.gradient.b[gate] = stored<S>(*memory_.dbetas.at(r) * gates.beta * (1 - gates.beta));
    store_row<S>(
        layer_.value_dim, memory_.dvalues.at(r),
        call_.gradient.qkv + row * layer_.width() + 2 * layer_.key_heads * layer_.key_dim + head_ * layer_.value_dim);
  }
}

template <class S>
void DeltaBackwardTask<S>::write_key_gradients() {
  const UnitNorm<T> norm(layer_);
  const int dim = layer_.key_dim;
  NumberRows<T>& scratch = memory_.dvalues;
  scratch.resize_to_zeros(5, dim);
  const auto write = [&](T weight, const T* dy, std::int64_t place) {
    const T* x = wide_row<S>(dim, call_.in.qkv + place, scratch.at(1));
    const T factor = norm.forward(weight, scratch.at(0), x, scratch.at(2));
    norm.backward(weight, scratch.at(0), factor, dy, x, scratch.at(2), scratch.at(3));
    store_row<S>(dim, scratch.at(2), call_.gradient.qkv + place);
  };
  for (const RecurrentSegment& segment : tree_.segments) {
    for (int r = 0; r < segment.rows; ++r) {
      const std::int64_t place = (segment.begin + r) * layer_.width() + key_head_ * dim;
      write(norm.query, memory_.dqueries.at(segment.in_tree + r), place);
      write(norm.key, memory_.dkeys.at(segment.in_tree + r), place + layer_.key_heads * dim);
    }
  }
}

}  // namespace

template <class S>
void gated_delta_backward(const GatedDeltaLayer<Computed<S>>& layer, const GatedDeltaInput<S>& in,
                          std::span<const RecurrentRows> sequences, const S* dout,
                          const GatedDeltaGradient<S>& gradient) {
  CARNOT_CHECK_EQ(layer.value_heads % layer.key_heads, 0);
  const std::vector<RecurrentTree> trees = recurrent_trees(sequences);
  const auto heads = static_cast<std::size_t>(layer.value_heads);
  std::vector<DeltaParameterSums<Computed<S>>> sums(trees.size() * heads);
  const DeltaBackwardCall<S> call{.layer = layer, .in = in, .dout = dout, .gradient = gradient};
  kernel_pool().run(std::ssize(trees) * layer.key_heads, [&](std::int64_t task) {
    const auto tree = static_cast<std::size_t>(task / layer.key_heads);
    DeltaBackwardTask<S>(call, trees[tree], static_cast<int>(task % layer.key_heads)).run(sums.data() + tree * heads);
  });
  for (std::size_t i = 0; i < sums.size(); ++i) {
    gradient.log_rate[i % heads] += sums[i].log_rate;
    gradient.step_bias[i % heads] += sums[i].step_bias;
  }
}

#define CARNOT_INSTANTIATE(S)                                                                           \
  template void gated_delta_backward<S>(const GatedDeltaLayer<Computed<S>>&, const GatedDeltaInput<S>&, \
                                        std::span<const RecurrentRows>, const S*, const GatedDeltaGradient<S>&);
CARNOT_INSTANTIATE(float)
CARNOT_INSTANTIATE(double)
CARNOT_INSTANTIATE(BFloat16)

}  // namespace carnot::kernel
