#include "carnot/core/nn/silu_convolution.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <vector>

#include "carnot/core/base/check.h"
#include "carnot/core/kernel/dispatch.h"
#include "carnot/core/nn/convolution_taps.h"
#include "carnot/core/nn/kv_cache.h"
#include "carnot/core/nn/linear.h"
#include "carnot/core/nn/row_tasks.h"

namespace carnot {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

template <class S>
std::vector<S> ones(std::int64_t count) {
  return std::vector<S>(static_cast<std::size_t>(count), kernel::stored<S>(1));
}

/// `table`: rows that `taps` refer to.
template <class S>
at::Tensor convolved_rows(const at::Tensor& table, const at::Tensor& weight, const Taps& taps) {
  const std::int64_t rows = taps.size(0), width = table.size(1);
  const int count = static_cast<int>(taps.size(1));
  const at::Tensor weights = weights_by_tap<S>(weight);
  const std::vector<S> gate = ones<S>(width);
  at::Tensor y = at::empty({rows, width}, table.options());
  for_each_row(rows, kConvolvedRowsPerTask, [&](std::int64_t row) {
    const auto summed = pointers_of<const S>(taps, row, data_of<S>(table), table.stride(0));
    S* out = data_of<S>(y) + row * width;
    kernel::storage_table<S>().convolve(width, count, summed.data(), data_of<Computed<S>>(weights), width, gate.data(),
                                        out);
    kernel::storage_table<S>().swiglu(width, out, gate.data(), out);
  });
  return y;
}

/// What the gradient of one batch reads and writes.
template <class S>
struct SiluConvolutionGradients {
  using T = Computed<S>;
  const at::Tensor &x, &taps, &dout;
  at::Tensor weights_LD, dx_TD, dweights_LD;

  /// Channels from `first` on, row after row: the sums over rows have one order.
  void add_rows(std::int64_t first, std::int64_t count) const {
    const std::int64_t width = x.size(1);
    const int number = static_cast<int>(taps.size(1));
    const kernel::StorageTable<S>& table = kernel::storage_table<S>();
    const std::vector<S> gate = ones<S>(count);
    std::vector<S> sum(gate), dsum(gate), unused(gate);
    for (std::int64_t row = 0; row < x.size(0); ++row) {
      const auto rows = pointers_of<const S>(taps, row, data_of<S>(x) + first, x.stride(0));
      const auto drows = pointers_of<T>(taps, row, data_of<T>(dx_TD) + first, width);
      const T* weights = data_of<T>(weights_LD) + first;
      table.convolve(count, number, rows.data(), weights, width, gate.data(), sum.data());
      table.swiglu_backward(count, data_of<S>(dout) + row * width + first, sum.data(), gate.data(), dsum.data(),
                            unused.data());
      table.convolve_backward(count, number, rows.data(), weights, width, gate.data(), dsum.data(), drows.data(),
                              data_of<T>(dweights_LD) + first, unused.data());
    }
  }
};

template <class S>
variable_list silu_convolution_backward(const at::Tensor& x, const at::Tensor& weight, const Taps& taps,
                                        const at::Tensor& dout) {
  const auto wide = computed_like<S>(x);
  const SiluConvolutionGradients<S> gradients{.x = x,
                                              .taps = taps,
                                              .dout = dout,
                                              .weights_LD = weights_by_tap<S>(weight),
                                              .dx_TD = at::zeros(x.sizes(), wide),
                                              .dweights_LD = at::zeros({taps.size(1), x.size(1)}, wide)};
  for_row_ranges(x.size(1), kConvolvedChannelsPerTask,
                 [&](std::int64_t begin, std::int64_t end) { gradients.add_rows(begin, end - begin); });
  return {gradients.dx_TD.to(x.scalar_type()), gradients.dweights_LD.t().reshape(weight.sizes()), at::Tensor()};
}

at::Tensor own_silu_convolution(const at::Tensor& table, const at::Tensor& weight, const Taps& taps) {
  return with_number_type(table.scalar_type(), [&]<class S>() { return convolved_rows<S>(table, weight, taps); });
}

struct SiluConvolutionFunction : torch::autograd::Function<SiluConvolutionFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight, const Taps& taps) {
    context->save_for_backward({x, weight, taps});
    return own_silu_convolution(x, weight, taps);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor dout = gradients[0].contiguous();
    return with_number_type(saved[0].scalar_type(), [&]<class S>() {
      return silu_convolution_backward<S>(saved[0], saved[1], saved[2], dout);
    });
  }
};

at::Tensor portable_silu_convolution(const at::Tensor& table, const at::Tensor& weight, const Taps& taps) {
  const at::Tensor places = taps.to(table.device());
  const at::Tensor rows = table.index_select(0, places.clamp_min(0).flatten()).view({taps.size(0), taps.size(1), -1});
  const at::Tensor seen = rows.masked_fill(places.lt(0).unsqueeze(-1), 0);
  return at::silu((seen * weight.squeeze(1).t()).sum(1));
}

/// The rows of the batch, and behind them the last ones of each sequence before it.
struct PagedTable {
  at::Tensor rows_RD{}, states{};
  Taps taps{};
};

PagedTable paged_table(const at::Tensor& x, const PagedAttention& plan, const at::Tensor& last_rows, int taps) {
  std::vector<std::int64_t> states, all;
  for (std::size_t s = 0; s < plan.sequences.size(); ++s) {
    const PagedRows& rows = plan.sequences[s];
    CARNOT_CHECK_GE(rows.state, 0);
    states.push_back(rows.state);
    const std::int64_t before = x.size(0) + static_cast<std::int64_t>(s + 1) * (taps - 1) - rows.past;
    const auto row_of = [&](int position) {
      return position < rows.past ? before + position : std::int64_t{rows.begin} + position - rows.past;
    };
    append_taps(taps, rows.past, rows.past + rows.end - rows.begin, row_of, all);
  }
  const at::Tensor held = at::tensor(states, at::kLong).to(x.device());
  return {.rows_RD = at::cat({x, last_rows.index_select(0, held).view({-1, x.size(1)})}),
          .states = held,
          .taps = at::tensor(all, at::kLong).view({-1, taps})};
}

/// The rows that the next one of each sequence sums over; zeros before position 0.
void keep_last_rows(const PagedTable& table, const PagedAttention& plan, const at::Tensor& last_rows) {
  std::vector<std::int64_t> ends;
  for (const PagedRows& rows : plan.sequences) ends.push_back(rows.end - 1);
  const at::Tensor places = table.taps.index_select(0, at::tensor(ends, at::kLong)).narrow(1, 1, last_rows.size(1));
  const at::Tensor kept = table.rows_RD.index_select(0, places.clamp_min(0).flatten().to(last_rows.device()))
                              .view({-1, last_rows.size(1), last_rows.size(2)});
  last_rows.index_copy_(0, table.states, kept.masked_fill(places.lt(0).unsqueeze(-1).to(last_rows.device()), 0));
}

}  // namespace

at::Tensor silu_convolution(const at::Tensor& x_TD, const at::Tensor& weight, const AttentionPlan& plan, int layer,
                            KernelChoice kernels) {
  const int taps = static_cast<int>(weight.size(2));
  const bool own = kernels == KernelChoice::Own && own_kernels_take(x_TD);
  if (const auto* paged = std::get_if<PagedAttention>(&plan)) {
    CARNOT_CHECK(!at::GradMode::is_enabled(), "a paged plan has no gradient");
    const at::Tensor& last_rows = paged->cache->last_rows(layer);
    const PagedTable table = paged_table(x_TD, *paged, last_rows, taps);
    keep_last_rows(table, *paged, last_rows);
    return own ? own_silu_convolution(table.rows_RD, weight, table.taps)
               : portable_silu_convolution(table.rows_RD, weight, table.taps);
  }
  const Taps rows = taps_of(std::get<PackedAttention>(plan), taps);
  if (!own) return portable_silu_convolution(x_TD, weight, rows);
  CARNOT_CHECK_EQ(x_TD.stride(1), 1);
  if (at::GradMode::is_enabled()) return SiluConvolutionFunction::apply(x_TD, weight, rows);
  return own_silu_convolution(x_TD, weight, rows);
}

}  // namespace carnot
