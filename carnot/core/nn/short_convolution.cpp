#include "carnot/core/nn/short_convolution.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/custom_function.h>

#include "carnot/core/base/check.h"
#include "carnot/core/kernel/dispatch.h"
#include "carnot/core/nn/convolution_taps.h"
#include "carnot/core/nn/kv_cache.h"
#include "carnot/core/nn/linear.h"
#include "carnot/core/nn/number_types.h"
#include "carnot/core/nn/row_tasks.h"

namespace carnot {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Taps taps_of(const PagedAttention& plan, int taps) {
  std::vector<std::int64_t> all;
  for (const PagedRows& rows : plan.sequences) {
    const auto row_of = [&](int position) -> std::int64_t {
      return std::int64_t{rows.blocks[static_cast<std::size_t>(position / kBlockTokens)]} * kBlockTokens +
             position % kBlockTokens;
    };
    append_taps(taps, rows.past, rows.past + rows.end - rows.begin, row_of, all);
  }
  return at::tensor(all, at::kLong).view({-1, taps});
}

/// u of every row, each at the place of its last tap.
template <class S>
void write_products(const at::Tensor& bcx, const Taps& taps, const at::Tensor& table) {
  const std::int64_t width = bcx.size(1) / 3;
  const S* in = data_of<S>(bcx);
  for_each_row(bcx.size(0), kConvolvedRowsPerTask, [&](std::int64_t row) {
    const S* b = in + row * 3 * width;
    S* u = pointers_of<S>(taps, row, data_of<S>(table), width)[static_cast<std::size_t>(taps.size(1) - 1)];
    kernel::storage_table<S>().multiply(width, b, b + 2 * width, u);
  });
}

template <class S>
at::Tensor convolve(const at::Tensor& bcx, const at::Tensor& weight, const Taps& taps, const at::Tensor& table) {
  const std::int64_t width = bcx.size(1) / 3;
  write_products<S>(bcx, taps, table);
  const at::Tensor weights = weights_by_tap<S>(weight);
  at::Tensor y = at::empty({bcx.size(0), width}, bcx.options());
  const S* in = data_of<S>(bcx);
  S* out = data_of<S>(y);
  for_each_row(bcx.size(0), kConvolvedRowsPerTask, [&](std::int64_t row) {
    const auto rows = pointers_of<const S>(taps, row, data_of<S>(table), width);
    kernel::storage_table<S>().convolve(width, static_cast<int>(taps.size(1)), rows.data(),
                                        data_of<Computed<S>>(weights), width, in + row * 3 * width + width,
                                        out + row * width);
  });
  return y;
}

/// What the gradient of one batch reads and writes.
template <class S>
struct ConvolutionGradients {
  using T = Computed<S>;
  const at::Tensor &bcx, &taps, &dout;
  at::Tensor weights_LH, u_TH, du_TH, dweights_LH, dbcx;

  /// Channels from `first` on, row after row: the sums over rows have one order.
  void add_rows(std::int64_t first, std::int64_t count) const {
    const std::int64_t width = u_TH.size(1);
    for (std::int64_t row = 0; row < bcx.size(0); ++row) {
      const auto rows = pointers_of<const S>(taps, row, data_of<S>(u_TH) + first, width);
      const auto drows = pointers_of<T>(taps, row, data_of<T>(du_TH) + first, width);
      const std::int64_t gate = row * 3 * width + width + first;
      kernel::storage_table<S>().convolve_backward(count, static_cast<int>(taps.size(1)), rows.data(),
                                                   data_of<T>(weights_LH) + first, width, data_of<S>(bcx) + gate,
                                                   data_of<S>(dout) + row * width + first, drows.data(),
                                                   data_of<T>(dweights_LH) + first, data_of<S>(dbcx) + gate);
    }
  }

  /// From u's gradient to those of B and x.
  void split(std::int64_t row) const {
    const std::int64_t width = u_TH.size(1), begin = row * 3 * width;
    const S* b = data_of<S>(bcx) + begin;
    S* db = data_of<S>(dbcx) + begin;
    kernel::storage_table<S>().multiply_backward(width, data_of<T>(du_TH) + row * width, b, b + 2 * width, db,
                                                 db + 2 * width);
  }
};

template <class S>
variable_list convolve_backward(const at::Tensor& bcx, const at::Tensor& weight, const Taps& taps,
                                const at::Tensor& dout) {
  const std::int64_t rows = bcx.size(0), width = bcx.size(1) / 3;
  const auto wide = computed_like<S>(bcx);
  const ConvolutionGradients<S> gradients{.bcx = bcx,
                                          .taps = taps,
                                          .dout = dout,
                                          .weights_LH = weights_by_tap<S>(weight),
                                          .u_TH = at::empty({rows, width}, bcx.options()),
                                          .du_TH = at::zeros({rows, width}, wide),
                                          .dweights_LH = at::zeros({taps.size(1), width}, wide),
                                          .dbcx = at::empty_like(bcx)};
  write_products<S>(bcx, taps, gradients.u_TH);
  for_row_ranges(width, kConvolvedChannelsPerTask,
                 [&](std::int64_t begin, std::int64_t end) { gradients.add_rows(begin, end - begin); });
  for_each_row(rows, kConvolvedRowsPerTask, [&](std::int64_t row) { gradients.split(row); });
  return {gradients.dbcx, gradients.dweights_LH.t().reshape(weight.sizes()), at::Tensor()};
}

at::Tensor own_convolution(const at::Tensor& bcx, const at::Tensor& weight, const Taps& taps, const at::Tensor& table) {
  return with_number_type(bcx.scalar_type(), [&]<class S>() { return convolve<S>(bcx, weight, taps, table); });
}

at::Tensor table_of(const at::Tensor& bcx) { return at::empty({bcx.size(0), bcx.size(1) / 3}, bcx.options()); }

struct ConvolutionFunction : torch::autograd::Function<ConvolutionFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& bcx, const at::Tensor& weight,
                            const Taps& taps) {
    context->save_for_backward({bcx, weight, taps});
    return own_convolution(bcx, weight, taps, table_of(bcx));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor dout = gradients[0].contiguous();
    return with_number_type(saved[0].scalar_type(),
                            [&]<class S>() { return convolve_backward<S>(saved[0], saved[1], saved[2], dout); });
  }
};

/// `table`: the cache's rows of u; undefined: those of the batch.
at::Tensor portable_convolution(const at::Tensor& bcx, const at::Tensor& weight, const Taps& taps, at::Tensor table) {
  const auto parts = bcx.chunk(3, 1);
  const at::Tensor u = parts[0] * parts[2], places = taps.to(bcx.device());
  if (table.defined())
    table.index_copy_(0, places.select(1, taps.size(1) - 1), u);
  else
    table = u;
  const at::Tensor rows = table.index_select(0, places.clamp_min(0).flatten()).view({taps.size(0), taps.size(1), -1});
  const at::Tensor seen = rows.masked_fill(places.lt(0).unsqueeze(-1), 0);
  return parts[1] * (seen * weight.squeeze(1).t()).sum(1);
}

}  // namespace

at::Tensor short_convolution(const at::Tensor& bcx_TD, const at::Tensor& weight_HL, const AttentionPlan& plan,
                             int layer, KernelChoice kernels) {
  const int width = static_cast<int>(weight_HL.size(2));
  const Taps taps = std::visit([&](const auto& any) { return taps_of(any, width); }, plan);
  const bool own = kernels == KernelChoice::Own && own_kernels_take(bcx_TD);
  if (const auto* paged = std::get_if<PagedAttention>(&plan)) {
    CARNOT_CHECK(!at::GradMode::is_enabled(), "a paged plan has no gradient");
    const at::Tensor table = paged->cache->values(layer).view({-1, weight_HL.size(0)});
    return own ? own_convolution(bcx_TD.contiguous(), weight_HL, taps, table)
               : portable_convolution(bcx_TD, weight_HL, taps, table);
  }
  if (!own) return portable_convolution(bcx_TD, weight_HL, taps, {});
  const at::Tensor bcx = bcx_TD.contiguous();
  if (at::GradMode::is_enabled()) return ConvolutionFunction::apply(bcx, weight_HL, taps);
  return own_convolution(bcx, weight_HL, taps, table_of(bcx));
}

}  // namespace carnot
