#include "carnot/core/nn/elementwise.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/custom_function.h>

#include "carnot/core/kernel/dispatch.h"
#include "carnot/core/nn/linear.h"
#include "carnot/core/nn/number_types.h"
#include "carnot/core/nn/row_tasks.h"
#include "carnot/core/nn/weight_gradients.h"

namespace carnot {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kRowsPerTask = 64;  // sums over rows are added per task, then over tasks: a fixed order

std::int64_t tasks_of(std::int64_t rows) { return (rows + kRowsPerTask - 1) / kRowsPerTask; }

template <class S>
at::Tensor rms_norm_forward(const at::Tensor& x, const at::Tensor& weight, const RmsNormOptions& options,
                            const at::Tensor& factors) {
  using T = Computed<S>;
  at::Tensor y = at::empty_like(x);
  const std::int64_t width = x.size(1);
  const S* in = data_of<S>(x);
  S* out = data_of<S>(y);
  const S* scale = data_of<S>(weight);
  T* kept = factors.defined() ? data_of<T>(factors) : nullptr;
  const T offset = static_cast<T>(options.offset), epsilon = static_cast<T>(options.epsilon);
  for_each_row(x.size(0), kRowsPerTask, [&](std::int64_t row) {
    const T factor =
        kernel::storage_table<S>().rms_norm(width, in + row * width, scale, offset, epsilon, out + row * width);
    if (kept != nullptr) kept[row] = factor;
  });
  return y;
}

template <class S>
variable_list rms_norm_backward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& factors, double offset,
                                const at::Tensor& dy) {
  using T = Computed<S>;
  const std::int64_t rows = x.size(0), width = x.size(1), tasks = tasks_of(rows);
  at::Tensor dx = at::empty_like(x);
  at::Tensor partial = at::zeros({tasks, width}, computed_like<S>(x));
  const S* in = data_of<S>(x);
  const S* gradient = data_of<S>(dy);
  const S* scale = data_of<S>(weight);
  const T* factor = data_of<T>(factors);
  S* out = data_of<S>(dx);
  T* sums = data_of<T>(partial);
  for_each_row(rows, kRowsPerTask, [&](std::int64_t row) {
    kernel::storage_table<S>().rms_norm_backward(width, gradient + row * width, in + row * width, scale,
                                                 static_cast<T>(offset), factor[row], out + row * width,
                                                 sums + row / kRowsPerTask * width);
  });
  at::Tensor dweight = at::zeros({width}, computed_like<S>(weight));
  for (std::int64_t task = 0; task < tasks; ++task)
    kernel::storage_table<T>().add(width, sums + task * width, data_of<T>(dweight));
  return {dx, dweight, at::Tensor(), at::Tensor()};
}

struct RmsNormFunction : torch::autograd::Function<RmsNormFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight, double epsilon,
                            double offset) {
    return with_number_type(x.scalar_type(), [&]<class S>() {
      const at::Tensor factors = at::empty({x.size(0)}, computed_like<S>(x));
      context->save_for_backward({x, weight, factors});
      context->saved_data["offset"] = offset;
      return rms_norm_forward<S>(x, weight, {.epsilon = epsilon, .offset = offset}, factors);
    });
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor dy = gradients[0].contiguous();
    const double offset = context->saved_data["offset"].toDouble();
    return with_number_type(saved[0].scalar_type(),
                            [&]<class S>() { return rms_norm_backward<S>(saved[0], saved[1], saved[2], offset, dy); });
  }
};

template <class S>
auto gated_product_of(Activation activation) {
  const kernel::StorageTable<S>& table = kernel::storage_table<S>();
  if (activation == Activation::Sigmoid) return table.sigmoid_product;
  return activation == Activation::Silu ? table.swiglu : table.geglu;
}
template <class S>
auto gated_gradient_of(Activation activation) {
  const kernel::StorageTable<S>& table = kernel::storage_table<S>();
  if (activation == Activation::Sigmoid) return table.sigmoid_product_backward;
  return activation == Activation::Silu ? table.swiglu_backward : table.geglu_backward;
}

template <class S>
at::Tensor gated_forward(const at::Tensor& gate_up, Activation activation) {
  const auto product = gated_product_of<S>(activation);
  const std::int64_t width = gate_up.size(1) / 2;
  at::Tensor y = at::empty({gate_up.size(0), width}, gate_up.options());
  const S* in = data_of<S>(gate_up);
  S* out = data_of<S>(y);
  for_each_row(gate_up.size(0), kRowsPerTask, [&](std::int64_t row) {
    const S* gate = in + row * 2 * width;
    product(width, gate, gate + width, out + row * width);
  });
  return y;
}

template <class S>
at::Tensor gated_backward(const at::Tensor& gate_up, Activation activation, const at::Tensor& dy) {
  const auto gradient_of = gated_gradient_of<S>(activation);
  const std::int64_t width = gate_up.size(1) / 2;
  at::Tensor dx = at::empty_like(gate_up);
  const S* in = data_of<S>(gate_up);
  const S* gradient = data_of<S>(dy);
  S* out = data_of<S>(dx);
  for_each_row(gate_up.size(0), kRowsPerTask, [&](std::int64_t row) {
    const S* gate = in + row * 2 * width;
    S* dgate = out + row * 2 * width;
    gradient_of(width, gradient + row * width, gate, gate + width, dgate, dgate + width);
  });
  return dx;
}

at::Tensor portable_activation(const at::Tensor& gate, Activation activation) {
  switch (activation) {
    case Activation::Silu: return at::silu(gate);
    case Activation::GeluTanh: return at::gelu(gate, "tanh");
    case Activation::Sigmoid: break;
  }
  return at::sigmoid(gate);
}

at::Tensor own_gated(const at::Tensor& gate_up, Activation activation) {
  return with_number_type(gate_up.scalar_type(), [&]<class S>() { return gated_forward<S>(gate_up, activation); });
}

struct GatedFunction : torch::autograd::Function<GatedFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& gate_up, std::int64_t activation) {
    context->save_for_backward({gate_up});
    context->saved_data["activation"] = activation;
    return own_gated(gate_up, static_cast<Activation>(activation));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor gate_up = context->get_saved_variables()[0];
    const at::Tensor dy = gradients[0].contiguous();
    const auto activation = static_cast<Activation>(context->saved_data["activation"].toInt());
    return {
        with_number_type(gate_up.scalar_type(), [&]<class S>() { return gated_backward<S>(gate_up, activation, dy); }),
        at::Tensor()};
  }
};

template <class S>
at::Tensor gather_rows(const at::Tensor& table, const at::Tensor& tokens) {
  const std::int64_t width = table.size(1);
  at::Tensor rows = at::empty({tokens.numel(), width}, table.options());
  const std::int64_t* ids = tokens.data_ptr<std::int64_t>();
  for (std::int64_t t = 0; t < tokens.numel(); ++t)
    std::copy_n(data_of<S>(table) + ids[t] * width, width, data_of<S>(rows) + t * width);
  return rows;
}

at::Tensor own_embed(const at::Tensor& table, const at::Tensor& tokens) {
  return with_number_type(table.scalar_type(), [&]<class S>() { return gather_rows<S>(table, tokens); });
}

/// The table's gradient; undefined if the rows were added to an existing one, for example a tied head's: creating a
/// large table of zeros takes longer than its rows.
template <class S>
at::Tensor scatter_rows(const at::Tensor& dy, const at::Tensor& tokens, const at::Tensor& table) {
  using T = Computed<S>;
  const std::int64_t width = dy.size(1);
  at::Tensor there;
  if (std::is_same_v<S, kernel::BFloat16>) there = gradient_to_add_to(table);
  const at::Tensor gradient = there.defined() ? there : at::zeros(table.sizes(), computed_like<S>(dy));
  const std::int64_t* ids = tokens.data_ptr<std::int64_t>();
  for (std::int64_t t = 0; t < tokens.numel(); ++t)
    kernel::storage_table<S>().add(width, data_of<S>(dy) + t * width, data_of<T>(gradient) + ids[t] * width);
  return there.defined() ? at::Tensor() : gradient;
}

struct EmbedFunction : torch::autograd::Function<EmbedFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& table, const at::Tensor& tokens) {
    context->save_for_backward({table, tokens});
    return own_embed(table, tokens);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &table = saved[0], &tokens = saved[1];
    const at::Tensor dy = gradients[0].contiguous();
    return {with_number_type(dy.scalar_type(), [&]<class S>() { return scatter_rows<S>(dy, tokens, table); }),
            at::Tensor()};
  }
};

}  // namespace

at::Tensor rms_norm(const at::Tensor& x_TH, const at::Tensor& weight_H, const RmsNormOptions& options,
                    KernelChoice kernels) {
  if (kernels == KernelChoice::Portable || !own_kernels_take(x_TH)) {
    const at::Tensor x = x_TH.scalar_type() == at::kDouble ? x_TH : x_TH.to(at::kFloat);
    const at::Tensor normed = x * at::rsqrt((x * x).mean(-1, true) + options.epsilon);
    if (options.offset == 0) return weight_H * normed.to(x_TH.scalar_type());
    return (normed * (weight_H.to(normed.scalar_type()) + options.offset)).to(x_TH.scalar_type());
  }
  const at::Tensor x = x_TH.contiguous();
  if (at::GradMode::is_enabled()) return RmsNormFunction::apply(x, weight_H, options.epsilon, options.offset);
  return with_number_type(x.scalar_type(),
                          [&]<class S>() { return rms_norm_forward<S>(x, weight_H, options, at::Tensor()); });
}

at::Tensor gated_product(const at::Tensor& gate_up_TF, Activation activation, KernelChoice kernels) {
  if (kernels == KernelChoice::Portable || !own_kernels_take(gate_up_TF)) {
    const auto halves = gate_up_TF.chunk(2, -1);
    return portable_activation(halves[0], activation) * halves[1];
  }
  const at::Tensor x = gate_up_TF.contiguous();
  if (at::GradMode::is_enabled()) return GatedFunction::apply(x, static_cast<std::int64_t>(activation));
  return own_gated(x, activation);
}

at::Tensor embed(const at::Tensor& table_VH, const at::Tensor& tokens_T, KernelChoice kernels) {
  if (kernels == KernelChoice::Portable || !own_kernels_take(table_VH))
    return at::embedding(table_VH, tokens_T.to(table_VH.device()));
  if (at::GradMode::is_enabled()) return EmbedFunction::apply(table_VH, tokens_T);
  return own_embed(table_VH, tokens_T);
}

}  // namespace carnot
