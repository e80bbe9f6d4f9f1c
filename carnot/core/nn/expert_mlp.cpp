#include "carnot/core/nn/expert_mlp.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "carnot/core/kernel/dispatch.h"
#include "carnot/core/nn/elementwise.h"
#include "carnot/core/nn/expert_router.h"
#include "carnot/core/nn/number_types.h"
#include "carnot/core/nn/row_tasks.h"

namespace carnot {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kMixedRowsPerTask = 16;

/// The rows of all experts, one expert after the other: S = T K of them.
struct ExpertRows {
  std::vector<std::int64_t> counts{};  ///< of each expert
  std::vector<std::int64_t> source{};  ///< the row of x that each is
  std::vector<std::int64_t> place{};   ///< [T, K]: where a row's experts have it, in order of expert
  std::int64_t top_k = 0;

  std::int64_t tokens() const { return std::ssize(place) / top_k; }
};

using SharedRows = std::shared_ptr<const ExpertRows>;

SharedRows rows_of_experts(const at::Tensor& expert_TK, std::int64_t experts) {
  ExpertRows rows{.counts = std::vector<std::int64_t>(static_cast<std::size_t>(experts)), .top_k = expert_TK.size(1)};
  const std::span chosen(expert_TK.data_ptr<std::int64_t>(), static_cast<std::size_t>(expert_TK.numel()));
  for (const std::int64_t expert : chosen) ++rows.counts[static_cast<std::size_t>(expert)];
  std::vector<std::int64_t> next(rows.counts.size());
  for (std::size_t e = 1; e < next.size(); ++e) next[e] = next[e - 1] + rows.counts[e - 1];
  rows.source.resize(chosen.size());
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const std::int64_t at = next[static_cast<std::size_t>(chosen[i])]++;
    rows.place.push_back(at);
    rows.source[static_cast<std::size_t>(at)] = static_cast<std::int64_t>(i) / rows.top_k;
  }
  return std::make_shared<const ExpertRows>(std::move(rows));
}

struct HeldRows : torch::CustomClassHolder {
  explicit HeldRows(SharedRows held) : rows(std::move(held)) {}
  SharedRows rows;
};

void hold(AutogradContext* context, SharedRows rows) {
  context->saved_data["rows"] = c10::IValue::make_capsule(c10::make_intrusive<HeldRows>(std::move(rows)));
}

SharedRows held_rows(AutogradContext* context) {
  return static_cast<HeldRows*>(context->saved_data["rows"].toCapsule().get())->rows;
}

at::Tensor rows_from(const at::Tensor& x, std::span<const std::int64_t> source) {
  const at::Tensor out = at::empty({std::ssize(source), x.size(1)}, x.options());
  const auto bytes = static_cast<std::size_t>(x.size(1)) * x.element_size();
  const char* from = static_cast<const char*>(x.data_ptr());
  char* to = static_cast<char*>(out.data_ptr());
  for_row_ranges(std::ssize(source), kMixedRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
    for (auto at = static_cast<std::size_t>(begin); at < static_cast<std::size_t>(end); ++at)
      std::copy_n(from + static_cast<std::size_t>(source[at]) * bytes, bytes, to + at * bytes);
  });
  return out;
}

/// out[t] = sum over t's experts, in order, of weight (1 if undefined) times y[place], rounded once.
template <class S>
at::Tensor mixed(const at::Tensor& y, const at::Tensor& weight_TK, const ExpertRows& rows) {
  using T = Computed<S>;
  const std::int64_t width = y.size(1);
  const at::Tensor out = at::empty({rows.tokens(), width}, y.options());
  const T* weights = weight_TK.defined() ? data_of<T>(weight_TK) : nullptr;
  for_row_ranges(rows.tokens(), kMixedRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
    std::vector<T> sums(static_cast<std::size_t>(width)), part(sums);
    for (std::int64_t t = begin; t < end; ++t) {
      std::fill(sums.begin(), sums.end(), T(0));
      for (std::int64_t slot = t * rows.top_k; slot < (t + 1) * rows.top_k; ++slot) {
        kernel::storage_table<S>().widen(width, data_of<S>(y) + rows.place[static_cast<std::size_t>(slot)] * width,
                                         part.data());
        const T weight = weights == nullptr ? T(1) : weights[slot];
        for (T& value : part) value *= weight;
        kernel::storage_table<T>().add(width, part.data(), sums.data());
      }
      kernel::storage_table<S>().round(width, sums.data(), data_of<S>(out) + t * width);
    }
  });
  return out;
}

/// Rows of all experts, from x.
struct ScatterFunction : torch::autograd::Function<ScatterFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, SharedRows rows) {
    const at::Tensor out = rows_from(x, rows->source);
    hold(context, std::move(rows));
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const SharedRows rows = held_rows(context);
    const at::Tensor dy = gradients[0].contiguous();
    return {with_number_type(dy.scalar_type(), [&]<class S>() { return mixed<S>(dy, at::Tensor(), *rows); }),
            at::Tensor()};
  }
};

/// Gradients of `mixed`: of the experts' results, and of the weights.
template <class S>
variable_list unmixed(const at::Tensor& y, const at::Tensor& weight_TK, const ExpertRows& rows,
                      const at::Tensor& dout) {
  using T = Computed<S>;
  const std::int64_t width = y.size(1);
  const at::Tensor dy = at::empty_like(y), dweight = at::empty_like(weight_TK);
  for_row_ranges(rows.tokens(), kMixedRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
    std::vector<T> gradient(static_cast<std::size_t>(width)), other(gradient);
    for (std::int64_t t = begin; t < end; ++t) {
      kernel::storage_table<S>().widen(width, data_of<S>(dout) + t * width, gradient.data());
      for (std::int64_t slot = t * rows.top_k; slot < (t + 1) * rows.top_k; ++slot) {
        const std::int64_t first = rows.place[static_cast<std::size_t>(slot)] * width;
        kernel::storage_table<S>().widen(width, data_of<S>(y) + first, other.data());
        data_of<T>(dweight)[slot] = kernel::kernel_table<T>().dot(width, gradient.data(), other.data());
        const T weight = data_of<T>(weight_TK)[slot];
        std::transform(gradient.begin(), gradient.end(), other.begin(), [weight](T value) { return value * weight; });
        kernel::storage_table<S>().round(width, other.data(), data_of<S>(dy) + first);
      }
    }
  });
  return {dy, dweight, at::Tensor()};
}

struct MixFunction : torch::autograd::Function<MixFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& y, const at::Tensor& weight_TK,
                            SharedRows rows) {
    context->save_for_backward({y, weight_TK});
    const at::Tensor out = with_number_type(y.scalar_type(), [&]<class S>() { return mixed<S>(y, weight_TK, *rows); });
    hold(context, std::move(rows));
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const SharedRows rows = held_rows(context);
    const at::Tensor dout = gradients[0].contiguous();
    return with_number_type(dout.scalar_type(), [&]<class S>() { return unmixed<S>(saved[0], saved[1], *rows, dout); });
  }
};

at::Tensor index_tensor(const std::vector<std::int64_t>& values, const at::Tensor& like) {
  return at::tensor(values, at::kLong).to(like.device());
}

/// The rows of all experts, and back to one result a row; each with Carnot's kernels or LibTorch's operators.
struct RowExchange {
  SharedRows rows;
  bool own = false;

  at::Tensor to_experts(const at::Tensor& x) const {
    if (!own) return x.index_select(0, index_tensor(rows->source, x));
    return at::GradMode::is_enabled() ? ScatterFunction::apply(x, rows) : rows_from(x, rows->source);
  }

  at::Tensor from_experts(const at::Tensor& y, const at::Tensor& weight_TK) const {
    if (!own) {
      const at::Tensor of_rows = y.index_select(0, index_tensor(rows->place, y)).view({-1, rows->top_k, y.size(1)});
      return (of_rows.to(weight_TK.scalar_type()) * weight_TK.unsqueeze(-1)).sum(1).to(y.scalar_type());
    }
    if (at::GradMode::is_enabled()) return MixFunction::apply(y, weight_TK, rows);
    return with_number_type(y.scalar_type(), [&]<class S>() { return mixed<S>(y, weight_TK, *rows); });
  }
};

}  // namespace

at::Tensor expert_mlp(const at::Tensor& x_TH, const at::Tensor& router_EH,
                      const std::function<ExpertProducts(std::int64_t)>& products_of, const LayerPlan& layer,
                      PackedWeights& packed, KernelChoice kernels, ExpertBalance* balance) {
  const at::Tensor x = x_TH.contiguous();
  const Routing routing = route(x, router_EH, layer, packed, kernels, balance);
  const RowExchange exchange{.rows = rows_of_experts(routing.expert_TK, layer.experts),
                             .own = kernels == KernelChoice::Own && own_kernels_take(x)};
  const auto& counts = exchange.rows->counts;
  auto parts = exchange.to_experts(x).split_with_sizes(counts, 0);
  std::vector<at::Tensor> results;
  std::int64_t first = 0;
  for (std::size_t e = 0; e < counts.size(); first += counts[e++]) {
    if (counts[e] == 0 && !at::GradMode::is_enabled()) continue;
    const ExpertProducts products = products_of(static_cast<std::int64_t>(e));
    const auto input = [x, rows = exchange.rows, first, count = counts[e]] {
      return rows_from(
          x, std::span(rows->source).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)));
    };
    const at::Tensor gate_up = linear(parts[e], products.gate_up, packed, kernels, input);
    const auto gated = [gate_up, activation = layer.activation, kernels] {
      return gated_product(gate_up, activation, kernels);
    };
    results.push_back(linear(gated(), products.down, packed, kernels, gated));
  }
  parts.clear();  // the experts' inputs, before the results exist twice
  return exchange.from_experts(at::cat(results), routing.weight_TK);
}

}  // namespace carnot
