#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/custom_function.h>

#include <map>

#include "carnot/base/check.h"
#include "carnot/base/thread_pool.h"
#include "carnot/kernel/gemm.h"
#include "carnot/kernel/isa.h"
#include "carnot/nn/operators.h"
#include "carnot/nn/packed_weights.h"

namespace carnot {

PackedWeights::PackedWeights() : cache_(std::make_unique<Cache>()) {}
PackedWeights::~PackedWeights() = default;
PackedWeights::PackedWeights(PackedWeights&&) noexcept = default;
PackedWeights& PackedWeights::operator=(PackedWeights&&) noexcept = default;

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

std::vector<at::Tensor> defined(const std::array<at::Tensor, 3>& tensors) {
  std::vector<at::Tensor> out;
  for (const at::Tensor& tensor : tensors)
    if (tensor.defined()) out.push_back(tensor);
  return out;
}

template <class T>
void add_bias(at::Tensor& y, std::span<const at::Tensor> biases) {
  T* rows = y.data_ptr<T>();
  const std::int64_t width = y.size(1);
  std::int64_t first = 0;
  for (const at::Tensor& bias : biases) {
    const T* values = bias.data_ptr<T>();
    for (std::int64_t r = 0; r < y.size(0); ++r) kernel::isa<T>().add(bias.numel(), values, rows + r * width + first);
    first += bias.numel();
  }
}

template <class T>
at::Tensor linear_forward(const at::Tensor& x, std::span<const at::Tensor> weights, std::span<const at::Tensor> biases,
                          PackedWeights::Cache& cache) {
  const auto& packed = cache.for_product<T>(weights);
  at::Tensor y = at::empty({x.size(0), packed.columns()}, x.options());
  kernel::gemm<T>({.data = x.data_ptr<T>(), .rows = x.size(0), .row_stride = x.size(1)}, packed, y.data_ptr<T>(),
                  packed.columns(), false);
  if (!biases.empty()) add_bias<T>(y, biases);
  return y;
}

/// Sums of the columns [first, first + count) of dy, row after row.
template <class T>
at::Tensor column_sums(const at::Tensor& dy, std::int64_t first, std::int64_t count) {
  at::Tensor sums = at::zeros({count}, dy.options());
  const T* rows = dy.data_ptr<T>() + first;
  for (std::int64_t r = 0; r < dy.size(0); ++r) kernel::isa<T>().add(count, rows + r * dy.size(1), sums.data_ptr<T>());
  return sums;
}

template <class T>
variable_list linear_backward(const at::Tensor& x, std::span<const at::Tensor> weights, bool has_bias, const at::Tensor& dy,
                              bool needs_input, bool needs_weights, PackedWeights::Cache& cache) {
  variable_list gradients(8);
  if (needs_input) {
    gradients[0] = at::empty_like(x);
    kernel::gemm<T>({.data = dy.data_ptr<T>(), .rows = dy.size(0), .row_stride = dy.size(1)},
                    cache.for_gradient<T>(weights), gradients[0].data_ptr<T>(), x.size(1), false);
  }
  if (!needs_weights) return gradients;
  using Rows = typename kernel::PackedMatrix<T>::Rows;
  const Rows inputs{.data = x.data_ptr<T>(), .count = x.size(0), .row_stride = x.size(1)};
  auto& packed_input = cache.scratch<T>();
  packed_input.pack({&inputs, 1}, x.size(1));
  std::int64_t first = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::int64_t columns = weights[i].size(0);
    gradients[1 + i] = at::empty_like(weights[i]);
    kernel::gemm<T>({.data = dy.data_ptr<T>() + first, .rows = columns, .row_stride = 1, .depth_stride = dy.size(1)},
                    packed_input, gradients[1 + i].data_ptr<T>(), x.size(1), false);
    if (has_bias) gradients[4 + i] = column_sums<T>(dy, first, columns);
    first += columns;
  }
  return gradients;
}

struct LinearFunction : torch::autograd::Function<LinearFunction> {
  using Optional = std::optional<at::Tensor>;

  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& w0, const Optional& w1,
                            const Optional& w2, const Optional& b0, const Optional& b1, const Optional& b2,
                            PackedWeights::Cache* cache) {
    const auto weights = defined({w0, w1.value_or(at::Tensor()), w2.value_or(at::Tensor())});
    const auto biases = defined({b0.value_or(at::Tensor()), b1.value_or(at::Tensor()), b2.value_or(at::Tensor())});
    variable_list saved{x};
    saved.insert(saved.end(), weights.begin(), weights.end());
    context->save_for_backward(saved);
    context->saved_data["has_bias"] = !biases.empty();
    context->saved_data["needs_weights"] = w0.requires_grad();
    context->saved_data["cache"] = reinterpret_cast<std::int64_t>(cache);
    return x.scalar_type() == at::kFloat ? linear_forward<float>(x, weights, biases, *cache)
                                         : linear_forward<double>(x, weights, biases, *cache);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const std::vector<at::Tensor> weights(saved.begin() + 1, saved.end());
    const at::Tensor dy = gradients[0].contiguous();
    auto& cache = *reinterpret_cast<PackedWeights::Cache*>(context->saved_data["cache"].toInt());
    const bool has_bias = context->saved_data["has_bias"].toBool();
    const bool needs_weights = context->saved_data["needs_weights"].toBool();
    const bool needs_input = context->needs_input_grad(0);
    const at::Tensor& x = saved[0];
    return x.scalar_type() == at::kFloat
               ? linear_backward<float>(x, weights, has_bias, dy, needs_input, needs_weights, cache)
               : linear_backward<double>(x, weights, has_bias, dy, needs_input, needs_weights, cache);
  }
};

at::Tensor portable_linear(const at::Tensor& x, const LinearWeights& weights) {
  std::vector<at::Tensor> parts;
  for (std::size_t i = 0; i < 3; ++i)
    if (weights.weight[i].defined()) parts.push_back(at::linear(x, weights.weight[i], weights.bias[i]));
  return parts.size() == 1 ? parts[0] : at::cat(parts, 1);
}

}  // namespace

bool own_kernels_take(const at::Tensor& x) {
  return x.device().is_cpu() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble);
}

at::Tensor linear(const at::Tensor& x_TK, const LinearWeights& weights, PackedWeights& packed, KernelChoice kernels) {
  if (kernels == KernelChoice::Portable || !own_kernels_take(x_TK)) return portable_linear(x_TK, weights);
  CARNOT_CHECK_EQ(x_TK.size(1), weights.weight[0].size(1));
  const at::Tensor x = x_TK.contiguous();
  const auto optional = [](const at::Tensor& tensor) { return tensor.defined() ? std::optional(tensor) : std::nullopt; };
  if (at::GradMode::is_enabled())
    return LinearFunction::apply(x, weights.weight[0], optional(weights.weight[1]), optional(weights.weight[2]),
                                 optional(weights.bias[0]), optional(weights.bias[1]), optional(weights.bias[2]),
                                 &packed.cache());
  const auto w = defined(weights.weight);
  const auto b = defined(weights.bias);
  return x.scalar_type() == at::kFloat ? linear_forward<float>(x, w, b, packed.cache())
                                       : linear_forward<double>(x, w, b, packed.cache());
}

}  // namespace carnot
