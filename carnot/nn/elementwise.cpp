#include "carnot/nn/elementwise.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "carnot/base/thread_pool.h"
#include "carnot/kernel/dispatch.h"
#include "carnot/nn/linear.h"

namespace carnot {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kRowsPerTask = 64;  // sums over rows are made per task, then task by task: an order of their own

std::int64_t tasks_of(std::int64_t rows) { return (rows + kRowsPerTask - 1) / kRowsPerTask; }

/// Calls body(row) for every row, tasks of fixed size side by side.
template <class Body>
void for_rows(std::int64_t rows, Body body) {
  kernel_pool().run(tasks_of(rows), [&](std::int64_t task) {
    const std::int64_t end = std::min(rows, (task + 1) * kRowsPerTask);
    for (std::int64_t row = task * kRowsPerTask; row < end; ++row) body(row);
  });
}

template <class T>
at::Tensor rms_norm_forward(const at::Tensor& x, const at::Tensor& weight, double epsilon, T* factors) {
  at::Tensor y = at::empty_like(x);
  const std::int64_t width = x.size(1);
  const T* in = x.data_ptr<T>();
  T* out = y.data_ptr<T>();
  const T* scale = weight.data_ptr<T>();
  for_rows(x.size(0), [&](std::int64_t row) {
    const T factor =
        kernel::kernel_table<T>().rms_norm(width, in + row * width, scale, static_cast<T>(epsilon), out + row * width);
    if (factors != nullptr) factors[row] = factor;
  });
  return y;
}

template <class T>
variable_list rms_norm_backward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& factors,
                                const at::Tensor& dy) {
  const std::int64_t rows = x.size(0), width = x.size(1), tasks = tasks_of(rows);
  at::Tensor dx = at::empty_like(x);
  at::Tensor partial = at::zeros({tasks, width}, x.options());
  const T* in = x.data_ptr<T>();
  const T* gradient = dy.data_ptr<T>();
  const T* scale = weight.data_ptr<T>();
  const T* factor = factors.data_ptr<T>();
  T* out = dx.data_ptr<T>();
  T* sums = partial.data_ptr<T>();
  for_rows(rows, [&](std::int64_t row) {
    kernel::kernel_table<T>().rms_norm_backward(width, gradient + row * width, in + row * width, scale, factor[row],
                                                out + row * width, sums + row / kRowsPerTask * width);
  });
  at::Tensor dweight = at::zeros_like(weight);
  for (std::int64_t task = 0; task < tasks; ++task)
    kernel::kernel_table<T>().add(width, sums + task * width, dweight.data_ptr<T>());
  return {dx, dweight, at::Tensor()};
}

struct RmsNormFunction : torch::autograd::Function<RmsNormFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight, double epsilon) {
    const at::Tensor factors = at::empty({x.size(0)}, x.options());
    context->save_for_backward({x, weight, factors});
    return x.scalar_type() == at::kFloat ? rms_norm_forward<float>(x, weight, epsilon, factors.data_ptr<float>())
                                         : rms_norm_forward<double>(x, weight, epsilon, factors.data_ptr<double>());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor dy = gradients[0].contiguous();
    return saved[0].scalar_type() == at::kFloat ? rms_norm_backward<float>(saved[0], saved[1], saved[2], dy)
                                                : rms_norm_backward<double>(saved[0], saved[1], saved[2], dy);
  }
};

template <class T>
at::Tensor swiglu_forward(const at::Tensor& gate_up) {
  const std::int64_t width = gate_up.size(1) / 2;
  at::Tensor y = at::empty({gate_up.size(0), width}, gate_up.options());
  const T* in = gate_up.data_ptr<T>();
  T* out = y.data_ptr<T>();
  for_rows(gate_up.size(0), [&](std::int64_t row) {
    const T* gate = in + row * 2 * width;
    kernel::kernel_table<T>().swiglu(width, gate, gate + width, out + row * width);
  });
  return y;
}

template <class T>
at::Tensor swiglu_backward(const at::Tensor& gate_up, const at::Tensor& dy) {
  const std::int64_t width = gate_up.size(1) / 2;
  at::Tensor dx = at::empty_like(gate_up);
  const T* in = gate_up.data_ptr<T>();
  const T* gradient = dy.data_ptr<T>();
  T* out = dx.data_ptr<T>();
  for_rows(gate_up.size(0), [&](std::int64_t row) {
    const T* gate = in + row * 2 * width;
    T* dgate = out + row * 2 * width;
    kernel::kernel_table<T>().swiglu_backward(width, gradient + row * width, gate, gate + width, dgate, dgate + width);
  });
  return dx;
}

struct SwigluFunction : torch::autograd::Function<SwigluFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& gate_up) {
    context->save_for_backward({gate_up});
    return gate_up.scalar_type() == at::kFloat ? swiglu_forward<float>(gate_up) : swiglu_forward<double>(gate_up);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor gate_up = context->get_saved_variables()[0];
    const at::Tensor dy = gradients[0].contiguous();
    return {gate_up.scalar_type() == at::kFloat ? swiglu_backward<float>(gate_up, dy)
                                                : swiglu_backward<double>(gate_up, dy)};
  }
};

template <class T>
at::Tensor gather_rows(const at::Tensor& table, const at::Tensor& tokens) {
  const std::int64_t width = table.size(1);
  at::Tensor rows = at::empty({tokens.numel(), width}, table.options());
  const std::int64_t* ids = tokens.data_ptr<std::int64_t>();
  for (std::int64_t t = 0; t < tokens.numel(); ++t)
    std::copy_n(table.data_ptr<T>() + ids[t] * width, width, rows.data_ptr<T>() + t * width);
  return rows;
}

template <class T>
at::Tensor scatter_rows(const at::Tensor& dy, const at::Tensor& tokens, std::int64_t table_rows) {
  const std::int64_t width = dy.size(1);
  at::Tensor gradient = at::zeros({table_rows, width}, dy.options());
  const std::int64_t* ids = tokens.data_ptr<std::int64_t>();
  for (std::int64_t t = 0; t < tokens.numel(); ++t)
    kernel::kernel_table<T>().add(width, dy.data_ptr<T>() + t * width, gradient.data_ptr<T>() + ids[t] * width);
  return gradient;
}

struct EmbedFunction : torch::autograd::Function<EmbedFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& table, const at::Tensor& tokens) {
    context->save_for_backward({tokens});
    context->saved_data["rows"] = table.size(0);
    return table.scalar_type() == at::kFloat ? gather_rows<float>(table, tokens) : gather_rows<double>(table, tokens);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor tokens = context->get_saved_variables()[0];
    const at::Tensor dy = gradients[0].contiguous();
    const std::int64_t rows = context->saved_data["rows"].toInt();
    return {
        dy.scalar_type() == at::kFloat ? scatter_rows<float>(dy, tokens, rows) : scatter_rows<double>(dy, tokens, rows),
        at::Tensor()};
  }
};

}  // namespace

at::Tensor rms_norm(const at::Tensor& x_TH, const at::Tensor& weight_H, double epsilon, KernelChoice kernels) {
  if (kernels == KernelChoice::Portable || !own_kernels_take(x_TH)) {
    const at::Tensor x = x_TH.scalar_type() == at::kDouble ? x_TH : x_TH.to(at::kFloat);
    const at::Tensor normed = x * at::rsqrt((x * x).mean(-1, true) + epsilon);
    return weight_H * normed.to(x_TH.scalar_type());
  }
  const at::Tensor x = x_TH.contiguous();
  if (at::GradMode::is_enabled()) return RmsNormFunction::apply(x, weight_H, epsilon);
  return x.scalar_type() == at::kFloat ? rms_norm_forward<float>(x, weight_H, epsilon, nullptr)
                                       : rms_norm_forward<double>(x, weight_H, epsilon, nullptr);
}

at::Tensor swiglu(const at::Tensor& gate_up_TF, KernelChoice kernels) {
  if (kernels == KernelChoice::Portable || !own_kernels_take(gate_up_TF)) {
    const auto halves = gate_up_TF.chunk(2, -1);
    return at::silu(halves[0]) * halves[1];
  }
  const at::Tensor x = gate_up_TF.contiguous();
  if (at::GradMode::is_enabled()) return SwigluFunction::apply(x);
  return x.scalar_type() == at::kFloat ? swiglu_forward<float>(x) : swiglu_forward<double>(x);
}

at::Tensor embed(const at::Tensor& table_VH, const at::Tensor& tokens_T, KernelChoice kernels) {
  if (kernels == KernelChoice::Portable || !own_kernels_take(table_VH))
    return at::embedding(table_VH, tokens_T.to(table_VH.device()));
  if (at::GradMode::is_enabled()) return EmbedFunction::apply(table_VH, tokens_T);
  return table_VH.scalar_type() == at::kFloat ? gather_rows<float>(table_VH, tokens_T)
                                              : gather_rows<double>(table_VH, tokens_T);
}

}  // namespace carnot
