#include "carnot/nn/token_statistics.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "carnot/base/check.h"
#include "carnot/base/thread_pool.h"
#include "carnot/kernel/gemm.h"
#include "carnot/kernel/isa.h"

namespace carnot {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// About four million logits at a time; the number of rows depends on the vocabulary alone.
std::int64_t strip_rows(std::int64_t vocabulary) { return std::clamp<std::int64_t>((1 << 22) / vocabulary, 16, 256); }

constexpr std::int64_t kRowsPerTask = 8;

template <class Body>
void for_rows(std::int64_t rows, Body body) {
  kernel_pool().run((rows + kRowsPerTask - 1) / kRowsPerTask, [&](std::int64_t task) {
    for (std::int64_t r = task * kRowsPerTask; r < std::min(rows, (task + 1) * kRowsPerTask); ++r) body(r);
  });
}

template <class T>
kernel::PackedMatrix<T> packed_head(const at::Tensor& head, bool transposed) {
  const typename kernel::PackedMatrix<T>::Rows rows{.data = head.data_ptr<T>(), .count = head.size(0), .row_stride = head.size(1)};
  kernel::PackedMatrix<T> packed;
  if (transposed) {
    packed.pack_transposed({&rows, 1}, head.size(1));
  } else {
    packed.pack({&rows, 1}, head.size(1));
  }
  return packed;
}

template <class T>
void statistics_forward(const at::Tensor& hidden, const at::Tensor& head, const at::Tensor& targets, double temperature,
                        TokenStatistics& out) {
  const std::int64_t tokens = hidden.size(0), width = hidden.size(1), vocabulary = head.size(0);
  const std::int64_t strip = strip_rows(vocabulary);
  const auto packed = packed_head<T>(head, true);
  const T inverse = static_cast<T>(1 / temperature);
  const at::Tensor memory = at::empty({std::min(strip, tokens), vocabulary}, hidden.options());
  T* logits = memory.data_ptr<T>();
  const std::int64_t* target = targets.data_ptr<std::int64_t>();
  T* logprob = out.logprob_T.data_ptr<T>();
  T* entropy = out.entropy_T.data_ptr<T>();
  T* logsumexp = out.logsumexp_T.data_ptr<T>();
  for (std::int64_t first = 0; first < tokens; first += strip) {
    const std::int64_t rows = std::min(strip, tokens - first);
    kernel::gemm<T>({.data = hidden.data_ptr<T>() + first * width, .rows = rows, .row_stride = width}, packed, logits,
                    vocabulary, false);
    for_rows(rows, [&](std::int64_t r) {
      const std::int64_t t = first + r;
      kernel::isa<T>().row_statistics(vocabulary, inverse, logits + r * vocabulary, logsumexp + t, entropy + t);
      logprob[t] = logits[r * vocabulary + target[t]] - logsumexp[t];
    });
  }
}

struct StatisticsGradients {
  at::Tensor logprob, entropy, logsumexp;
  bool of_head = true;  ///< false: the head is frozen, nothing is kept for it
};

template <class T>
variable_list statistics_backward(const at::Tensor& hidden, const at::Tensor& head, const at::Tensor& targets,
                                  const at::Tensor& entropy, const at::Tensor& logsumexp, double temperature,
                                  const StatisticsGradients& gradients) {
  const std::int64_t tokens = hidden.size(0), width = hidden.size(1), vocabulary = head.size(0);
  const std::int64_t strip = strip_rows(vocabulary);
  const auto for_logits = packed_head<T>(head, true);
  const auto for_hidden = packed_head<T>(head, false);
  const T inverse = static_cast<T>(1 / temperature);
  const at::Tensor memory = at::empty({std::min(strip, tokens), vocabulary}, hidden.options());
  at::Tensor dhidden = at::empty_like(hidden), dhead = gradients.of_head ? at::empty_like(head) : at::Tensor();
  T* dlogits = memory.data_ptr<T>();
  const std::int64_t* target = targets.data_ptr<std::int64_t>();
  const T* g_logprob = gradients.logprob.data_ptr<T>();
  const T* g_entropy = gradients.entropy.data_ptr<T>();
  const T* g_logsumexp = gradients.logsumexp.data_ptr<T>();
  kernel::PackedMatrix<T> packed_hidden;
  for (std::int64_t first = 0; first < tokens; first += strip) {
    const std::int64_t rows = std::min(strip, tokens - first);
    const T* x = hidden.data_ptr<T>() + first * width;
    kernel::gemm<T>({.data = x, .rows = rows, .row_stride = width}, for_logits, dlogits, vocabulary, false);
    for_rows(rows, [&](std::int64_t r) {
      const std::int64_t t = first + r;
      T* row = dlogits + r * vocabulary;
      kernel::isa<T>().row_statistics_backward(vocabulary, inverse, row, logsumexp.data_ptr<T>()[t], entropy.data_ptr<T>()[t],
                                               g_logprob[t], g_entropy[t], g_logsumexp[t]);
      row[target[t]] += g_logprob[t] * inverse;
    });
    kernel::gemm<T>({.data = dlogits, .rows = rows, .row_stride = vocabulary}, for_hidden,
                    dhidden.data_ptr<T>() + first * width, width, false);
    if (!gradients.of_head) continue;
    const typename kernel::PackedMatrix<T>::Rows inputs{.data = x, .count = rows, .row_stride = width};
    packed_hidden.pack({&inputs, 1}, width);
    kernel::gemm<T>({.data = dlogits, .rows = vocabulary, .row_stride = 1, .depth_stride = vocabulary}, packed_hidden,
                    dhead.data_ptr<T>(), width, first > 0);
  }
  if (tokens == 0 && gradients.of_head) dhead.zero_();
  return {dhidden, dhead, at::Tensor(), at::Tensor(), at::Tensor()};
}

void portable_forward(const at::Tensor& hidden, const at::Tensor& head, const at::Tensor& targets, double temperature,
                      TokenStatistics& out) {
  const std::int64_t strip = strip_rows(head.size(0)) * (hidden.is_cuda() ? 16 : 1);
  for (std::int64_t first = 0; first < hidden.size(0); first += strip) {
    const std::int64_t rows = std::min(strip, hidden.size(0) - first);
    const at::Tensor logits = at::matmul(hidden.narrow(0, first, rows), head.t()).to(out.logprob_T.scalar_type()) / temperature;
    const at::Tensor logsumexp = logits.logsumexp(-1);
    const at::Tensor log_p = logits - logsumexp.unsqueeze(-1);
    out.logsumexp_T.narrow(0, first, rows).copy_(logsumexp);
    out.entropy_T.narrow(0, first, rows).copy_(-(log_p.exp() * log_p).sum(-1));
    out.logprob_T.narrow(0, first, rows).copy_(log_p.gather(-1, targets.narrow(0, first, rows).unsqueeze(-1)).squeeze(-1));
  }
}

variable_list portable_backward(const at::Tensor& hidden, const at::Tensor& head, const at::Tensor& targets,
                                const at::Tensor& entropy, const at::Tensor& logsumexp, double temperature,
                                const StatisticsGradients& gradients) {
  const auto wide = logsumexp.scalar_type();
  at::Tensor dhidden = at::empty_like(hidden), dhead;
  if (gradients.of_head) dhead = at::zeros_like(head, head.options().dtype(wide));
  const std::int64_t strip = strip_rows(head.size(0)) * (hidden.is_cuda() ? 16 : 1);
  for (std::int64_t first = 0; first < hidden.size(0); first += strip) {
    const std::int64_t rows = std::min(strip, hidden.size(0) - first);
    const auto part = [&](const at::Tensor& x) { return x.narrow(0, first, rows).unsqueeze(-1); };
    const at::Tensor x = hidden.narrow(0, first, rows);
    const at::Tensor log_p = at::matmul(x, head.t()).to(wide) / temperature - part(logsumexp);
    at::Tensor dlogits = log_p.exp() * (part(gradients.logsumexp) - part(gradients.logprob) -
                                        part(gradients.entropy) * (log_p + part(entropy)));
    dlogits.scatter_add_(-1, part(targets), part(gradients.logprob));
    dlogits = dlogits / temperature;
    dhidden.narrow(0, first, rows).copy_(at::matmul(dlogits.to(head.scalar_type()), head));
    if (gradients.of_head) dhead += at::matmul(dlogits.t(), x.to(wide));
  }
  if (gradients.of_head) dhead = dhead.to(head.scalar_type());
  return {dhidden, dhead, at::Tensor(), at::Tensor(), at::Tensor()};
}

TokenStatistics forward_of(const at::Tensor& hidden, const at::Tensor& head, const at::Tensor& targets, double temperature,
                           bool own) {
  const auto wide = hidden.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const auto options = hidden.options().dtype(wide).requires_grad(false);
  const std::int64_t tokens = hidden.size(0);
  TokenStatistics out{at::empty({tokens}, options), at::empty({tokens}, options), at::empty({tokens}, options)};
  if (!own) {
    portable_forward(hidden, head, targets, temperature, out);
  } else if (wide == at::kFloat) {
    statistics_forward<float>(hidden, head, targets, temperature, out);
  } else {
    statistics_forward<double>(hidden, head, targets, temperature, out);
  }
  return out;
}

struct StatisticsFunction : torch::autograd::Function<StatisticsFunction> {
  static variable_list forward(AutogradContext* context, const at::Tensor& hidden, const at::Tensor& head,
                               const at::Tensor& targets, double temperature, bool own) {
    TokenStatistics out = forward_of(hidden, head, targets, temperature, own);
    context->save_for_backward({hidden, head, targets, out.entropy_T, out.logsumexp_T});
    context->saved_data["temperature"] = temperature;
    context->saved_data["own"] = own;
    return {out.logprob_T, out.entropy_T, out.logsumexp_T};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const double temperature = context->saved_data["temperature"].toDouble();
    const auto or_zero = [&](const at::Tensor& g) { return g.defined() ? g.contiguous() : at::zeros_like(saved[4]); };
    const StatisticsGradients g{or_zero(gradients[0]), or_zero(gradients[1]), or_zero(gradients[2]),
                                context->needs_input_grad(1)};
    if (!context->saved_data["own"].toBool())
      return portable_backward(saved[0], saved[1], saved[2], saved[3], saved[4], temperature, g);
    return saved[0].scalar_type() == at::kFloat
               ? statistics_backward<float>(saved[0], saved[1], saved[2], saved[3], saved[4], temperature, g)
               : statistics_backward<double>(saved[0], saved[1], saved[2], saved[3], saved[4], temperature, g);
  }
};

}  // namespace

TokenStatistics token_statistics(const at::Tensor& hidden_TH, const at::Tensor& head_VH, const at::Tensor& targets_T,
                                 double temperature, KernelChoice kernels) {
  CARNOT_CHECK_EQ(hidden_TH.size(0), targets_T.numel());
  CARNOT_CHECK_GT(temperature, 0.0);
  const bool own = kernels == KernelChoice::Own && hidden_TH.is_cpu() &&
                   (hidden_TH.scalar_type() == at::kFloat || hidden_TH.scalar_type() == at::kDouble);
  const at::Tensor hidden = hidden_TH.contiguous();
  const at::Tensor targets = own ? targets_T.contiguous() : targets_T.to(hidden.device());
  if (!at::GradMode::is_enabled()) return forward_of(hidden, head_VH, targets, temperature, own);
  const auto out = StatisticsFunction::apply(hidden, head_VH, targets, temperature, own);
  return {out[0], out[1], out[2]};
}

}  // namespace carnot
