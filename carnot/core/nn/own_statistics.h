// nn/own_statistics.h -- parts of token_statistics that Carnot's kernels share for all number types. Internal to the
// room.
#pragma once

#include "carnot/core/kernel/statistics/selection.h"
#include "carnot/core/nn/packed_weights.h"
#include "carnot/core/nn/statistics_passes.h"
#include "carnot/core/nn/token_gradients.h"

namespace carnot {

/// The head as B of hidden head^T: the packed one that is kept, or one packed into `memory`.
template <class S>
const Packed<S>& packed_head(const StatisticsInputs& inputs, Packed<S>& memory) {
  const at::Tensor& head = inputs.head_VH;
  if (inputs.packed != nullptr) return inputs.packed->cache().for_product<S>({&head, 1});
  const auto rows = packed_rows<S>(data_of<S>(head), head.size(0), head.size(1));
  memory.pack_transposed({&rows, 1}, head.size(1));
  return memory;
}

/// For token t, whose row of logits is divided by the temperature: the cut, and the statistics of the kept entries.
template <class T>
void measure_kept(const T* row, const StatisticsInputs& inputs, std::int64_t t, StatisticsOutputs& out) {
  const std::int64_t vocabulary = inputs.head_VH.size(0);
  const kernel::Cut<T> cut = kernel::cut_lowest(row, vocabulary, inputs.removed);
  kernel::kernel_table<T>().kept_statistics(vocabulary, row, cut, out.kept_logsumexp_T.template data_ptr<T>() + t,
                                            out.statistics.clamped_entropy_T.template data_ptr<T>() + t);
  out.threshold_T.template data_ptr<T>()[t] = cut.threshold;
  out.tie_limit_T.template data_ptr<std::int64_t>()[t] = cut.tie_limit;
}

}  // namespace carnot
