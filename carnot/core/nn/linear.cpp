#include "carnot/core/nn/linear.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/custom_function.h>

#include <map>

#include "carnot/core/base/check.h"
#include "carnot/core/base/thread_pool.h"
#include "carnot/core/kernel/dispatch.h"
#include "carnot/core/nn/logit_segments.h"
#include "carnot/core/nn/packed_weights.h"
#include "carnot/core/nn/products.h"
#include "carnot/core/nn/weight_gradients.h"

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
    for (std::int64_t r = 0; r < y.size(0); ++r)
      kernel::storage_table<T>().add(bias.numel(), values, rows + r * width + first);
    first += bias.numel();
  }
}

template <class S>
at::Tensor linear_forward(const at::Tensor& x, std::span<const at::Tensor> weights, std::span<const at::Tensor> biases,
                          PackedWeights::Cache& cache) {
  const auto& packed = cache.for_product<S>(weights);
  at::Tensor y = at::empty({x.size(0), packed.columns()}, x.options());
  const MatrixInto<S> out{.data = data_of<S>(y), .stride = packed.columns()};
  if constexpr (std::is_same_v<S, kernel::BFloat16>) {
    const at::Tensor bias = biases.empty() ? at::Tensor() : at::cat(at::TensorList(biases.data(), biases.size()));
    multiply(matrix_rows<S>(x), packed, out, bias.defined() ? data_of<S>(bias) : nullptr);
  } else {
    multiply(matrix_rows<S>(x), packed, out);
    if (!biases.empty()) add_bias<S>(y, biases);
  }
  return y;
}

/// Sums of the columns [first, first + count) of dy, over the rows in order.
template <class S>
at::Tensor column_sums(const at::Tensor& dy, std::int64_t first, std::int64_t count) {
  at::Tensor sums = at::zeros({count}, computed_like<S>(dy));
  const S* rows = data_of<S>(dy) + first;
  for (std::int64_t r = 0; r < dy.size(0); ++r)
    kernel::storage_table<S>().add(count, rows + r * dy.size(1), data_of<Computed<S>>(sums));
  return sums;
}

/// An adapter and the first column of y that it adds to.
struct PlacedAdapter {
  Adapter adapter{};
  std::int64_t first = 0;
  std::size_t slot = 0;  ///< index of the weight, of three
};

std::vector<PlacedAdapter> placed(const std::array<at::Tensor, 3>& weights, const std::array<Adapter, 3>& adapters) {
  std::vector<PlacedAdapter> all;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    if (adapters[i].a.defined()) all.push_back({adapters[i], first, i});
    if (weights[i].defined()) first += weights[i].size(0);
  }
  return all;
}

std::vector<at::Tensor> a_matrices(const std::vector<PlacedAdapter>& adapters) {
  std::vector<at::Tensor> all;
  for (const PlacedAdapter& placed : adapters) all.push_back(placed.adapter.a);
  return all;
}

/// Adds the adapters to y. Returns scale x A^T of all adapters, concatenated: [T, sum of ranks].
template <class S>
at::Tensor add_adapters(at::Tensor& y, const at::Tensor& x, const std::vector<PlacedAdapter>& adapters, double scale,
                        PackedWeights::Cache& cache) {
  const auto& packed = cache.for_product<S>(a_matrices(adapters));
  at::Tensor sums = at::empty({x.size(0), packed.columns()}, computed_like<S>(x));
  multiply(matrix_rows<S>(x), packed, MatrixInto<Computed<S>>{data_of<Computed<S>>(sums), packed.columns()});
  const at::Tensor narrow = sums.mul_(scale).to(x.scalar_type());
  const S* rows = data_of<S>(narrow);
  for (const PlacedAdapter& placed : adapters) {
    multiply(MatrixRows<S>{rows, x.size(0), narrow.size(1)}, cache.for_product<S>({&placed.adapter.b, 1}),
             MatrixInto<S>{data_of<S>(y) + placed.first, y.size(1), true});
    rows += placed.adapter.a.size(0);
  }
  return narrow;
}

/// The positions of LinearFunction's arguments, and of their gradients.
enum Argument : std::size_t { kInput = 0, kWeight = 1, kBias = 4, kA = 7, kB = 10, kArguments = 16 };

/// Gradients of one product; y = x W^T + narrow B^T, narrow = scale x A^T. Gradients of weights have the type of sums.
template <class S>
struct LinearBackward {
  using T = Computed<S>;

  at::Tensor x, narrow, dy;  ///< x and narrow only if a gradient needs them
  const std::vector<at::Tensor>& weights;
  const std::vector<PlacedAdapter>& adapters;
  PackedWeights::Cache& cache;
  variable_list gradients = variable_list(kArguments);

  MatrixRows<S> dy_columns(std::int64_t first) const { return {data_of<S>(dy) + first, dy.size(0), dy.size(1)}; }

  /// Gradient of `weight`: columns [first, ...) of dy, transposed, times `right` [T, width].
  at::Tensor outer(const at::Tensor& weight, std::int64_t first, const Packed<S>& right) const {
    return outer(weight, dy_columns(first), right);
  }
  at::Tensor outer(const at::Tensor& weight, const MatrixRows<S>& left, const Packed<S>& right) const {
    // float32 products would be added in parts, with other bits than autograd's.
    at::Tensor there;
    if (std::is_same_v<S, kernel::BFloat16>) there = gradient_to_add_to(weight);
    const at::Tensor gradient = there.defined() ? there : at::empty(weight.sizes(), computed_like<S>(dy));
    multiply_transposed(left, weight.size(0), right,
                        MatrixInto<T>{.data = data_of<T>(gradient), .stride = right.columns(), .add = there.defined()});
    return there.defined() ? at::Tensor() : gradient;
  }

  const Packed<S>& packed_columns(const S* data, std::int64_t row_stride, std::int64_t columns) {
    const auto rows = packed_rows<S>(data, dy.size(0), row_stride);
    return cache.packed_once<S>({&rows, 1}, columns);
  }

  void input() {
    gradients[kInput] = at::empty({dy.size(0), weights[0].size(1)}, dy.options());
    if (dy.size(0) == 0) return;
    multiply(matrix_rows<S>(dy), cache.for_gradient<S>(weights),
             MatrixInto<S>{data_of<S>(gradients[kInput]), weights[0].size(1)});
  }

  void weights_and_biases(bool has_bias) {
    const auto& packed_input = packed_columns(data_of<S>(x), x.size(1), x.size(1));
    std::int64_t first = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const std::int64_t columns = weights[i].size(0);
      gradients[kWeight + i] = outer(weights[i], first, packed_input);
      if (has_bias) gradients[kBias + i] = column_sums<S>(dy, first, columns);
      first += columns;
    }
  }

  /// Also adds the adapters' share to the input's gradient, if defined.
  void adapter_matrices(double scale) {
    at::Tensor sums = at::empty(narrow.sizes(), computed_like<S>(narrow));
    std::int64_t column = 0;
    for (const PlacedAdapter& placed : adapters) {
      const std::int64_t rank = placed.adapter.a.size(0);
      multiply(dy_columns(placed.first), cache.for_gradient<S>({&placed.adapter.b, 1}),
               MatrixInto<T>{data_of<T>(sums) + column, narrow.size(1)});
      gradients[kB + placed.slot] =
          outer(placed.adapter.b, placed.first, packed_columns(data_of<S>(narrow) + column, narrow.size(1), rank));
      column += rank;
    }
    const at::Tensor dnarrow = sums.mul_(scale).to(narrow.scalar_type());
    const auto& packed_input = packed_columns(data_of<S>(x), x.size(1), x.size(1));
    column = 0;
    for (const PlacedAdapter& placed : adapters) {
      const MatrixRows<S> left{data_of<S>(dnarrow) + column, dy.size(0), narrow.size(1)};
      gradients[kA + placed.slot] = outer(placed.adapter.a, left, packed_input);
      column += placed.adapter.a.size(0);
    }
    if (!gradients[kInput].defined()) return;
    multiply(matrix_rows<S>(dnarrow), cache.for_gradient<S>(a_matrices(adapters)),
             MatrixInto<S>{data_of<S>(gradients[kInput]), x.size(1), true});
  }
};

struct HeldInput : torch::CustomClassHolder {
  explicit HeldInput(InputAgain held) : again(std::move(held)) {}
  InputAgain again;
};

struct LinearFunction : torch::autograd::Function<LinearFunction> {
  using Optional = std::optional<at::Tensor>;
  static constexpr const char* kAgain = "again";

  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& w0, const Optional& w1,
                            const Optional& w2, const Optional& bias0, const Optional& bias1, const Optional& bias2,
                            const Optional& a0, const Optional& a1, const Optional& a2, const Optional& b0,
                            const Optional& b1, const Optional& b2, double scale, PackedWeights::Cache* cache,
                            InputAgain again) {
    const auto plain = [](const Optional& tensor) { return tensor.value_or(at::Tensor()); };
    const LinearWeights all{.weight = {w0, plain(w1), plain(w2)},
                            .bias = {plain(bias0), plain(bias1), plain(bias2)},
                            .adapter = {{{plain(a0), plain(b0)}, {plain(a1), plain(b1)}, {plain(a2), plain(b2)}}},
                            .adapter_scale = scale};
    at::Tensor narrow;
    const at::Tensor y =
        with_number_type(x.scalar_type(), [&]<class S>() { return product<S>(x, all, *cache, narrow); });
    // A frozen product without adapters needs only its weights to propagate the gradient.
    const bool keeps_input = w0.requires_grad() || narrow.defined();
    variable_list saved{keeps_input && !again ? x : at::Tensor(), narrow};
    saved.insert(saved.end(), all.weight.begin(), all.weight.end());
    for (const Adapter& adapter : all.adapter) saved.insert(saved.end(), {adapter.a, adapter.b});
    context->save_for_backward(saved);
    context->saved_data["has_bias"] = bias0.has_value();
    context->saved_data["needs_weights"] = w0.requires_grad();
    context->saved_data["scale"] = scale;
    context->saved_data["cache"] = reinterpret_cast<std::int64_t>(cache);
    if (keeps_input && again)
      context->saved_data[kAgain] = c10::IValue::make_capsule(c10::make_intrusive<HeldInput>(std::move(again)));
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return with_number_type(gradients[0].scalar_type(),
                            [&]<class S>() { return typed_backward<S>(context, gradients[0].contiguous()); });
  }

  template <class S>
  static at::Tensor product(const at::Tensor& x, const LinearWeights& all, PackedWeights::Cache& cache,
                            at::Tensor& narrow) {
    at::Tensor y = linear_forward<S>(x, defined(all.weight), defined(all.bias), cache);
    const auto adapters = placed(all.weight, all.adapter);
    if (!adapters.empty()) narrow = add_adapters<S>(y, x, adapters, all.adapter_scale, cache);
    return y;
  }

  template <class S>
  static variable_list typed_backward(AutogradContext* context, const at::Tensor& dy) {
    const auto saved = context->get_saved_variables();
    const std::array<at::Tensor, 3> slots{saved[2], saved[3], saved[4]};
    const auto weights = defined(slots);
    const auto adapters = placed(slots, {{{saved[5], saved[6]}, {saved[7], saved[8]}, {saved[9], saved[10]}}});
    LinearBackward<S> backward{.x = saved[0],
                               .narrow = saved[1],
                               .dy = dy,
                               .weights = weights,
                               .adapters = adapters,
                               .cache = *reinterpret_cast<PackedWeights::Cache*>(context->saved_data["cache"].toInt())};
    if (context->needs_input_grad(kInput)) backward.input();
    if (const auto held = context->saved_data.find(kAgain); held != context->saved_data.end()) {
      const at::NoGradGuard no_grad;
      backward.x = static_cast<HeldInput*>(held->second.toCapsule().get())->again();
      context->saved_data.erase(held);  // with what it holds: autograd keeps saved_data until the graph is gone
    }
    if (context->saved_data["needs_weights"].toBool())
      backward.weights_and_biases(context->saved_data["has_bias"].toBool());
    if (!adapters.empty()) backward.adapter_matrices(context->saved_data["scale"].toDouble());
    return std::move(backward.gradients);
  }
};

at::Tensor portable_linear(const at::Tensor& x, const LinearWeights& weights) {
  std::vector<at::Tensor> parts;
  for (std::size_t i = 0; i < 3; ++i) {
    if (!weights.weight[i].defined()) continue;
    parts.push_back(at::linear(x, weights.weight[i], weights.bias[i]));
    const Adapter& adapter = weights.adapter[i];
    if (adapter.a.defined())
      parts.back() = parts.back() + at::linear(at::linear(x, adapter.a) * weights.adapter_scale, adapter.b);
  }
  return parts.size() == 1 ? parts[0] : at::cat(parts, 1);
}

}  // namespace

bool own_kernels_take(const at::Tensor& x) {
  const at::ScalarType type = x.scalar_type();
  return x.device().is_cpu() && (type == at::kFloat || type == at::kDouble || type == at::kBFloat16);
}

std::string kernel_sets(at::ScalarType type) {
  const std::string set = kernel::kernel_table<float>().name;
  return type == at::kBFloat16 ? set + ", products " + kernel::bfloat16_kernels().name : set;
}

at::Tensor linear(const at::Tensor& x_TK, const LinearWeights& weights, PackedWeights& packed, KernelChoice kernels,
                  InputAgain again) {
  if (kernels == KernelChoice::Portable || !own_kernels_take(x_TK)) return portable_linear(x_TK, weights);
  CARNOT_CHECK_EQ(x_TK.size(1), weights.weight[0].size(1));
  const at::Tensor x = x_TK.contiguous();
  if (at::GradMode::is_enabled()) {
    const auto optional = [](const at::Tensor& tensor) {
      return tensor.defined() ? std::optional(tensor) : std::nullopt;
    };
    const auto& [weight, bias, adapter, scale] = weights;
    return LinearFunction::apply(x, weight[0], optional(weight[1]), optional(weight[2]), optional(bias[0]),
                                 optional(bias[1]), optional(bias[2]), optional(adapter[0].a), optional(adapter[1].a),
                                 optional(adapter[2].a), optional(adapter[0].b), optional(adapter[1].b),
                                 optional(adapter[2].b), scale, &packed.cache(), std::move(again));
  }
  at::Tensor narrow;
  return with_number_type(x.scalar_type(),
                          [&]<class S>() { return LinearFunction::product<S>(x, weights, packed.cache(), narrow); });
}

void keep_packed_alone(std::span<const at::Tensor> weights, PackedWeights& packed) {
  with_number_type(weights[0].scalar_type(), [&]<class S>() { packed.cache().keep_product_alone<S>(weights); });
}

at::Tensor unrounded_product(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != at::kBFloat16) return at::mm(a, b);
  if (a.is_cuda()) return at::mm(a, b, at::kFloat);
  return at::mm(a.to(at::kFloat), b.to(at::kFloat));  // LibTorch has the other one on GPUs only
}

LogitRows head_logits(const at::Tensor& hidden_TH, const at::Tensor& head_VH,
                      std::span<const float> inverse_temperature_T, PackedWeights& packed, KernelChoice kernels) {
  if (kernels == KernelChoice::Portable || hidden_TH.scalar_type() != at::kBFloat16)
    return {.logits_BV = linear(hidden_TH, {.weight = {head_VH}}, packed, kernels)};
  if (!own_kernels_take(hidden_TH)) return {.logits_BV = unrounded_product(hidden_TH, head_VH.t())};
  const at::Tensor x = hidden_TH.contiguous();
  CARNOT_CHECK_EQ(static_cast<std::size_t>(x.size(0)), inverse_temperature_T.size());
  const std::int64_t vocabulary = head_VH.size(0);
  LogitRows rows{.logits_BV = at::empty({x.size(0), vocabulary}, x.options().dtype(at::kFloat))};
  rows.segments.resize(static_cast<std::size_t>(x.size(0) * kernel::segments_of(vocabulary)));
  measure_segments(matrix_rows<kernel::BFloat16>(x), packed.cache().for_product<kernel::BFloat16>({&head_VH, 1}),
                   {.inverse_temperature_T = inverse_temperature_T,
                    .logits_TV = data_of<float>(rows.logits_BV),
                    .segments = rows.segments});
  return rows;
}

}  // namespace carnot
