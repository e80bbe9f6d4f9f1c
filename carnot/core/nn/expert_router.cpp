#include "carnot/core/nn/expert_router.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <span>
#include <vector>

#include "carnot/core/kernel/dispatch.h"
#include "carnot/core/nn/products.h"
#include "carnot/core/nn/row_tasks.h"

namespace carnot {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kRoutedRowsPerTask = 16;

/// The indices of the `count` largest, in ascending order; of equal ones the first. Also ends where numbers are NaN.
template <class T>
void largest(std::span<const T> values, std::int64_t count, std::int64_t* out) {
  std::vector<bool> taken(values.size());
  for (std::int64_t i = 0; i < count; ++i) {
    std::size_t best = values.size();
    for (std::size_t e = 0; e < values.size(); ++e)
      if (!taken[e] && (best == values.size() || values[e] > values[best])) best = e;
    taken[best] = true;
    out[i] = static_cast<std::int64_t>(best);
  }
  std::sort(out, out + count);
}

/// What the gradient needs in addition to the routing.
struct RoutedRows {
  Routing routing{};
  at::Tensor probability_TE{};  ///< rows are whole tiles apart
};

/// Once for each layer: nothing where the layer runs again.
template <class T>
void count(const RoutedRows& all, std::int64_t experts, int layer, ExpertBalance* balance) {
  if (balance == nullptr || !balance->awaits(layer)) return;
  const std::int64_t rows = all.probability_TE.size(0), stride = all.probability_TE.size(1);
  std::vector<std::int64_t> chosen(static_cast<std::size_t>(experts));
  std::vector<double> sums(static_cast<std::size_t>(experts));
  const auto* of_rows = all.routing.expert_TK.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < all.routing.expert_TK.numel(); ++i) ++chosen[static_cast<std::size_t>(of_rows[i])];
  const T* probabilities = data_of<T>(all.probability_TE);
  for (std::int64_t t = 0; t < rows; ++t)
    for (std::int64_t e = 0; e < experts; ++e) sums[static_cast<std::size_t>(e)] += probabilities[t * stride + e];
  balance->count(layer, rows, chosen, sums);
}

template <class S>
RoutedRows own_route(const at::Tensor& x, const at::Tensor& router, const LayerPlan& layer, PackedWeights::Cache& cache,
                     ExpertBalance* balance) {
  using T = Computed<S>;
  const std::int64_t rows = x.size(0), experts = router.size(0), top_k = layer.top_k;
  const std::int64_t stride = (experts + kernel::kTile - 1) / kernel::kTile * kernel::kTile;
  RoutedRows all{.routing = {.expert_TK = at::empty({rows, top_k}, at::kLong),
                             .weight_TK = at::empty({rows, top_k}, computed_like<S>(x))},
                 .probability_TE = at::empty({rows, stride}, computed_like<S>(x))};
  T* probabilities = data_of<T>(all.probability_TE);
  T* weights = data_of<T>(all.routing.weight_TK);
  auto* chosen = all.routing.expert_TK.data_ptr<std::int64_t>();
  multiply(matrix_rows<S>(x), cache.for_product<S>({&router, 1}), MatrixInto<T>{probabilities, stride});
  for_each_row(rows, kRoutedRowsPerTask, [&](std::int64_t t) {
    T* row = probabilities + t * stride;
    kernel::kernel_table<T>().softmax(row, static_cast<int>(experts));
    largest<T>({row, static_cast<std::size_t>(experts)}, top_k, chosen + t * top_k);
    T sum = 0;
    for (std::int64_t k = 0; k < top_k; ++k) sum += weights[t * top_k + k] = row[chosen[t * top_k + k]];
    for (std::int64_t k = 0; layer.normalise_top_k && k < top_k; ++k) weights[t * top_k + k] /= sum;
  });
  count<T>(all, experts, layer.index, balance);
  return all;
}

/// The gradient of the logits [T, E], stored as S. `of_balance`: of each row's probabilities; empty: none.
template <class S>
at::Tensor logits_gradient(const RoutedRows& saved, const at::Tensor& dweights, bool normalise, std::int64_t experts,
                           std::span<const double> of_balance) {
  using T = Computed<S>;
  const std::int64_t rows = dweights.size(0), top_k = dweights.size(1), stride = saved.probability_TE.size(1);
  const at::Tensor dlogits = at::empty({rows, experts}, dweights.options());
  const T* probabilities = data_of<T>(saved.probability_TE);
  const T* weights = data_of<T>(saved.routing.weight_TK);
  const T* gradients = data_of<T>(dweights);
  const auto* chosen = saved.routing.expert_TK.data_ptr<std::int64_t>();
  for_each_row(rows, kRoutedRowsPerTask, [&](std::int64_t t) {
    const T *p = probabilities + t * stride, *w = weights + t * top_k, *dw = gradients + t * top_k;
    const std::int64_t* expert = chosen + t * top_k;
    T* dz = data_of<T>(dlogits) + t * experts;
    std::fill_n(dz, experts, T(0));
    T mean = 0, sum = 0;  // of dw, weighted; of the chosen probabilities
    for (std::int64_t k = 0; k < top_k; ++k) {
      mean += w[k] * dw[k];
      sum += p[expert[k]];
    }
    for (std::int64_t k = 0; k < top_k; ++k) dz[expert[k]] = normalise ? (dw[k] - mean) / sum : dw[k];
    // Of normalised weights, the mean over all experts is 0.
    double balance_mean = 0;
    for (std::size_t e = 0; e < of_balance.size(); ++e) balance_mean += p[e] * of_balance[e];
    for (std::int64_t e = 0; e < experts; ++e) {
      const double more = of_balance.empty() ? 0 : of_balance[static_cast<std::size_t>(e)] - balance_mean;
      dz[e] = p[e] * (dz[e] - (normalise ? 0 : mean) + static_cast<T>(more));
    }
  });
  return dlogits.to(scalar_type_of<S>());
}

struct RouterFunction : torch::autograd::Function<RouterFunction> {
  static variable_list forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& router,
                               const LayerPlan* layer, PackedWeights::Cache* cache, ExpertBalance* balance) {
    const bool normalise = layer->normalise_top_k;
    const RoutedRows all =
        with_number_type(x.scalar_type(), [&]<class S>() { return own_route<S>(x, router, *layer, *cache, balance); });
    const auto& [expert_TK, weight_TK] = all.routing;
    context->save_for_backward({x, router, all.probability_TE, expert_TK, weight_TK});
    context->mark_non_differentiable({expert_TK});
    context->saved_data["normalise"] = normalise;
    context->saved_data["cache"] = reinterpret_cast<std::int64_t>(cache);
    context->saved_data["balance"] = reinterpret_cast<std::int64_t>(balance);
    return {expert_TK, weight_TK};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    return with_number_type(saved[0].scalar_type(),
                            [&]<class S>() { return typed_backward<S>(context, saved, gradients[1].contiguous()); });
  }

  template <class S>
  static variable_list typed_backward(AutogradContext* context, const variable_list& saved,
                                      const at::Tensor& dweights) {
    using T = Computed<S>;
    const at::Tensor &x = saved[0], &router = saved[1];
    auto& cache = *reinterpret_cast<PackedWeights::Cache*>(context->saved_data["cache"].toInt());
    const RoutedRows rows{.routing = {saved[3], saved[4]}, .probability_TE = saved[2]};
    const auto* balance = reinterpret_cast<const ExpertBalance*>(context->saved_data["balance"].toInt());
    const at::Tensor dlogits =
        logits_gradient<S>(rows, dweights, context->saved_data["normalise"].toBool(), router.size(0),
                           balance == nullptr ? std::vector<double>() : balance->gradient());
    variable_list gradients(5);
    if (context->needs_input_grad(0)) {
      gradients[0] = at::empty_like(x);
      multiply(matrix_rows<S>(dlogits), cache.for_gradient<S>({&router, 1}),
               MatrixInto<S>{data_of<S>(gradients[0]), x.size(1)});
    }
    if (context->needs_input_grad(1)) {
      gradients[1] = at::empty(router.sizes(), computed_like<S>(x));
      const auto packed = packed_rows<S>(data_of<S>(x), x.size(0), x.size(1));
      multiply_transposed(matrix_rows<S>(dlogits), router.size(0), cache.packed_once<S>({&packed, 1}, x.size(1)),
                          MatrixInto<T>{data_of<T>(gradients[1]), x.size(1)});
    }
    return gradients;
  }
};

/// Counts, and adds the balance's gradient to that of the probabilities.
void balance_portably(const at::Tensor& probability_TE, const at::Tensor& expert_TK, int layer,
                      ExpertBalance* balance) {
  if (balance == nullptr) return;
  if (balance->awaits(layer)) {
    const at::NoGradGuard no_grad;
    const std::int64_t experts = probability_TE.size(1);
    const at::Tensor chosen = expert_TK.flatten().bincount({}, experts).cpu(),
                     sums = probability_TE.to(at::kDouble).sum(0).cpu();
    balance->count(layer, probability_TE.size(0), {chosen.data_ptr<std::int64_t>(), static_cast<std::size_t>(experts)},
                   {sums.data_ptr<double>(), static_cast<std::size_t>(experts)});
  }
  if (probability_TE.requires_grad())
    probability_TE.register_hook([balance](const at::Tensor& gradient) {
      return gradient + at::tensor(balance->gradient(), at::kDouble).to(gradient.options());
    });
}

Routing portable_route(const at::Tensor& x, const at::Tensor& router, const LayerPlan& layer, ExpertBalance* balance) {
  const auto wide = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor probability_TE = at::linear(x.to(wide), router.to(wide)).softmax(-1);
  const at::Tensor order = std::get<1>(probability_TE.sort(/*stable=*/true, /*dim=*/-1, /*descending=*/true));
  const at::Tensor expert_TK = std::get<0>(order.slice(1, 0, layer.top_k).sort(-1));
  balance_portably(probability_TE, expert_TK, layer.index, balance);
  const at::Tensor weight_TK = probability_TE.gather(1, expert_TK);
  return {.expert_TK = expert_TK.cpu().contiguous(),
          .weight_TK = layer.normalise_top_k ? weight_TK / weight_TK.sum(-1, /*keepdim=*/true) : weight_TK};
}

}  // namespace

Routing route(const at::Tensor& x_TH, const at::Tensor& router_EH, const LayerPlan& layer, PackedWeights& packed,
              KernelChoice kernels, ExpertBalance* balance) {
  if (kernels == KernelChoice::Portable || !own_kernels_take(x_TH))
    return portable_route(x_TH, router_EH, layer, balance);
  if (at::GradMode::is_enabled()) {
    const auto results = RouterFunction::apply(x_TH, router_EH, &layer, &packed.cache(), balance);
    return {.expert_TK = results[0], .weight_TK = results[1]};
  }
  return with_number_type(x_TH.scalar_type(), [&]<class S>() {
    return own_route<S>(x_TH, router_EH, layer, packed.cache(), balance).routing;
  });
}

}  // namespace carnot
