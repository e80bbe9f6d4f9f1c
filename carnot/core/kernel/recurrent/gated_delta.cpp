#include "carnot/core/kernel/recurrent/gated_delta.h"

#include <algorithm>
#include <vector>

#include "carnot/core/base/check.h"
#include "carnot/core/base/thread_pool.h"
#include "carnot/core/kernel/recurrent/gated_delta_rows.h"

namespace carnot::kernel {
namespace {

/// One value head of one tree, in memory that its thread keeps.
template <class S>
class DeltaForwardTask {
  using T = Computed<S>;

 public:
  void run(const GatedDeltaLayer<T>& layer, const GatedDeltaInput<S>& in, const RecurrentTree& tree,
           std::span<T* const> states, int head, S* out) {
    const auto own = std::count_if(tree.segments.begin(), tree.segments.end(),
                                   [](const RecurrentSegment& segment) { return !segment.last_behind; });
    own_.resize(own, layer.head_state());
    own_used_ = 0;
    places_.clear();
    for (const RecurrentSegment& segment : tree.segments) {
      T* given = segment.before < 0 && !states.empty() ? states[static_cast<std::size_t>(segment.sequence)] : nullptr;
      places_.push_back(given != nullptr ? given + head * layer.head_state() : start(layer, segment));
      rows_.load(layer, in, segment, head);
      advance(layer, segment.rows, places_.back());
      for (int r = 0; r < segment.rows; ++r)
        store_row<S>(layer.value_dim, out_.at(r),
                     out + ((segment.begin + r) * layer.value_heads + head) * layer.value_dim);
    }
  }

 private:
  /// The last segment behind another one continues in its place, the others in their own.
  T* start(const GatedDeltaLayer<T>& layer, const RecurrentSegment& segment) {
    T* before = segment.before < 0 ? nullptr : places_[static_cast<std::size_t>(segment.before)];
    if (segment.last_behind) return before;
    T* state = own_.at(own_used_++);
    if (before == nullptr) {
      std::fill_n(state, layer.head_state(), T(0));
    } else {
      std::copy_n(before, layer.head_state(), state);
    }
    return state;
  }

  void advance(const GatedDeltaLayer<T>& layer, int rows, T* state) {
    const KernelTable<T>& kernels = kernel_table<T>();
    out_.resize(rows, layer.panels() * kDeltaColumns<T>);
    T residual[kDeltaColumns<T>];
    for (int p = 0; p < layer.panels(); ++p) {
      T* panel = state + std::int64_t{p} * layer.key_dim * kDeltaColumns<T>;
      const int column = p * kDeltaColumns<T>;
      for (int r = 0; r < rows; ++r)
        kernels.delta_step(rows_.step(r, panel), rows_.value(r) + column, panel, residual, out_.at(r) + column);
    }
  }

  GatedDeltaRows<S> rows_{};
  NumberRows<T> own_{}, out_{};
  std::int64_t own_used_ = 0;
  std::vector<T*> places_{};  // of the segments' states
};

}  // namespace

template <class S>
void gated_delta_forward(const GatedDeltaLayer<Computed<S>>& layer, const GatedDeltaInput<S>& in,
                         std::span<const RecurrentRows> sequences, std::span<Computed<S>* const> states, S* out) {
  CARNOT_CHECK_EQ(layer.value_heads % layer.key_heads, 0);
  if (!states.empty()) {
    CARNOT_CHECK_EQ(states.size(), sequences.size());
    for (std::size_t s = 0; s < sequences.size(); ++s) {
      if (sequences[s].parent < 0) continue;
      CARNOT_CHECK(states[s] == nullptr, "a sequence with a parent has a state");
      CARNOT_CHECK(states[static_cast<std::size_t>(sequences[s].parent)] == nullptr, "a parent has a state");
    }
  }
  const std::vector<RecurrentTree> trees = recurrent_trees(sequences);
  kernel_pool().run(std::ssize(trees) * layer.value_heads, [&](std::int64_t task) {
    thread_local DeltaForwardTask<S> of_thread;
    of_thread.run(layer, in, trees[static_cast<std::size_t>(task / layer.value_heads)], states,
                  static_cast<int>(task % layer.value_heads), out);
  });
}

#define CARNOT_INSTANTIATE(S)                                                                          \
  template void gated_delta_forward<S>(const GatedDeltaLayer<Computed<S>>&, const GatedDeltaInput<S>&, \
                                       std::span<const RecurrentRows>, std::span<Computed<S>* const>, S*);
CARNOT_INSTANTIATE(float)
CARNOT_INSTANTIATE(double)
CARNOT_INSTANTIATE(BFloat16)

}  // namespace carnot::kernel
