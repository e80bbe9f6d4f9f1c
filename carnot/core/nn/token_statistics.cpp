#include "carnot/core/nn/token_statistics.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "carnot/core/base/check.h"
#include "carnot/core/kernel/dispatch.h"
#include "carnot/core/nn/bfloat16_statistics.h"
#include "carnot/core/nn/own_statistics.h"
#include "carnot/core/nn/portable_statistics.h"
#include "carnot/core/nn/products.h"

namespace carnot {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

DevicePassesOf offered_passes = nullptr;

DevicePasses* device_passes(at::Device device) { return offered_passes == nullptr ? nullptr : offered_passes(device); }

template <class T>
void own_statistics(const StatisticsInputs& inputs, StatisticsOutputs& out) {
  const std::int64_t tokens = inputs.tokens(), width = inputs.hidden_TH.size(1), vocabulary = inputs.head_VH.size(0);
  const std::int64_t strip = inputs.strip_rows();
  Packed<T> memory_of_head;
  const Packed<T>& head = packed_head<T>(inputs, memory_of_head);
  const auto& kernels = kernel::kernel_table<T>();
  const T inverse = static_cast<T>(1 / inputs.temperature);
  const at::Tensor memory = at::empty({std::min(strip, tokens), vocabulary}, inputs.hidden_TH.options());
  T* logits = memory.data_ptr<T>();
  const std::int64_t* target = inputs.targets_T.data_ptr<std::int64_t>();
  T* logprob = out.statistics.logprob_T.data_ptr<T>();
  T* entropy = out.statistics.entropy_T.data_ptr<T>();
  T* logsumexp = out.statistics.logsumexp_T.data_ptr<T>();
  for (std::int64_t first = 0; first < tokens; first += strip) {
    const std::int64_t rows = std::min(strip, tokens - first);
    multiply(MatrixRows<T>{inputs.hidden_TH.data_ptr<T>() + first * width, rows, width}, head,
             MatrixInto<T>{logits, vocabulary});
    for_logit_rows(rows, [&](std::int64_t r) {
      const std::int64_t t = first + r;
      T* row = logits + r * vocabulary;
      kernels.row_statistics(vocabulary, inverse, row, logsumexp + t, entropy + t);
      logprob[t] = row[target[t]] - logsumexp[t];
      if (inputs.removed > 0) measure_kept(row, inputs, t, out);
    });
  }
}

template <class T>
InputGradients own_statistics_backward(const StatisticsInputs& inputs, const StatisticsOutputs& saved,
                                       const StatisticsGradients& gradients) {
  const at::Tensor &hidden = inputs.hidden_TH, &head = inputs.head_VH;
  const std::int64_t tokens = inputs.tokens(), width = hidden.size(1), vocabulary = head.size(0);
  const std::int64_t strip = inputs.strip_rows();
  Packed<T> memory_of_head, for_hidden;
  const Packed<T>& for_logits = packed_head<T>(inputs, memory_of_head);
  const auto rows_of_head = packed_rows<T>(head.data_ptr<T>(), vocabulary, width);
  for_hidden.pack({&rows_of_head, 1}, width);
  const auto& kernels = kernel::kernel_table<T>();
  const T inverse = static_cast<T>(1 / inputs.temperature);
  const at::Tensor memory = at::empty({std::min(strip, tokens), vocabulary}, hidden.options());
  at::Tensor dhidden = at::empty_like(hidden), dhead = gradients.of_head ? at::empty_like(head) : at::Tensor();
  T* dlogits = memory.data_ptr<T>();
  const std::int64_t* target = inputs.targets_T.data_ptr<std::int64_t>();
  const TokenGradients<T> of_token(saved, gradients);
  kernel::PackedMatrix<T> packed_hidden;
  for (std::int64_t first = 0; first < tokens; first += strip) {
    const std::int64_t rows = std::min(strip, tokens - first);
    const T* x = hidden.data_ptr<T>() + first * width;
    kernel::gemm<T>({.data = x, .rows = rows, .row_stride = width}, for_logits, dlogits, vocabulary, false);
    for_logit_rows(rows, [&](std::int64_t r) {
      const std::int64_t t = first + r;
      T* row = dlogits + r * vocabulary;
      if (inputs.removed > 0) {
        const kernel::KeptGradient<T> kept = of_token.kept(t);
        kernels.row_statistics_backward(vocabulary, inverse, row, of_token.row(t), &kept);
      } else {
        kernels.row_statistics_backward(vocabulary, inverse, row, of_token.row(t), nullptr);
      }
      row[target[t]] += of_token.g_logprob[t] * inverse;
    });
    kernel::gemm<T>({.data = dlogits, .rows = rows, .row_stride = vocabulary}, for_hidden,
                    dhidden.data_ptr<T>() + first * width, width, false);
    if (!gradients.of_head) continue;
    const typename kernel::PackedMatrix<T>::Rows inputs_of_strip{.data = x, .count = rows, .row_stride = width};
    packed_hidden.pack({&inputs_of_strip, 1}, width);
    kernel::gemm<T>({.data = dlogits, .rows = vocabulary, .row_stride = 1, .depth_stride = vocabulary}, packed_hidden,
                    dhead.data_ptr<T>(), width, first > 0);
  }
  if (tokens == 0 && gradients.of_head) dhead.zero_();
  return {dhidden, dhead};
}

void own_statistics(const StatisticsInputs& inputs, StatisticsOutputs& out) {
  switch (inputs.hidden_TH.scalar_type()) {
    case at::kBFloat16: return bfloat16_statistics(inputs, out);
    case at::kDouble: return own_statistics<double>(inputs, out);
    default: return own_statistics<float>(inputs, out);
  }
}

InputGradients own_statistics_backward(const StatisticsInputs& inputs, const StatisticsOutputs& saved,
                                       const StatisticsGradients& gradients) {
  switch (inputs.hidden_TH.scalar_type()) {
    case at::kBFloat16: return bfloat16_statistics_backward(inputs, saved, gradients);
    case at::kDouble: return own_statistics_backward<double>(inputs, saved, gradients);
    default: return own_statistics_backward<float>(inputs, saved, gradients);
  }
}

/// What computes: the kernels of carnot/core/kernel or carnot/cuda, or LibTorch's operators.
enum StatisticsPath : std::int64_t { kOnProcessor, kOnDevice, kByOperators };

StatisticsPath path_of(const at::Tensor& hidden, KernelChoice kernels) {
  if (kernels == KernelChoice::Portable) return kByOperators;
  if (own_kernels_take(hidden)) return kOnProcessor;
  return device_passes(hidden.device()) != nullptr ? kOnDevice : kByOperators;
}

StatisticsOutputs forward_of(const StatisticsInputs& inputs, StatisticsPath path) {
  const auto wide = inputs.hidden_TH.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const auto options = inputs.hidden_TH.options().dtype(wide).requires_grad(false);
  const auto numbers = [&] { return at::empty({inputs.tokens()}, options); };
  StatisticsOutputs out{.statistics = {.logprob_T = numbers(), .entropy_T = numbers(), .logsumexp_T = numbers()}};
  if (inputs.removed > 0) {
    for (at::Tensor* tensor : {&out.statistics.clamped_entropy_T, &out.kept_logsumexp_T, &out.threshold_T})
      *tensor = numbers();
    out.tie_limit_T = at::empty({inputs.tokens()}, options.dtype(at::kLong));
  }
  switch (path) {
    case kOnProcessor: own_statistics(inputs, out); break;
    case kOnDevice: device_passes(inputs.hidden_TH.device())->forward(inputs, out); break;
    case kByOperators: portable_statistics(inputs, out);
  }
  return out;
}

InputGradients backward_of(const StatisticsInputs& inputs, StatisticsPath path, const StatisticsOutputs& saved,
                           const StatisticsGradients& gradients) {
  if (path == kByOperators) return portable_statistics_backward(inputs, saved, gradients);
  if (path == kOnDevice) return device_passes(inputs.hidden_TH.device())->backward(inputs, saved, gradients);
  return own_statistics_backward(inputs, saved, gradients);
}

struct StatisticsFunction : torch::autograd::Function<StatisticsFunction> {
  static variable_list forward(AutogradContext* context, const at::Tensor& hidden, const at::Tensor& head,
                               const at::Tensor& targets, double temperature, std::int64_t removed,
                               PackedWeights* packed, std::int64_t path) {
    const StatisticsOutputs out =
        forward_of({hidden, head, targets, temperature, removed, packed}, static_cast<StatisticsPath>(path));
    const TokenStatistics& s = out.statistics;
    context->save_for_backward({hidden, head, targets, s.entropy_T, s.logsumexp_T, s.clamped_entropy_T,
                                out.kept_logsumexp_T, out.threshold_T, out.tie_limit_T});
    context->saved_data["temperature"] = temperature;
    context->saved_data["removed"] = removed;
    context->saved_data["packed"] = reinterpret_cast<std::int64_t>(packed);
    context->saved_data["path"] = path;
    variable_list outputs{s.logprob_T, s.entropy_T, s.logsumexp_T};
    if (removed > 0) outputs.push_back(s.clamped_entropy_T);
    return outputs;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const StatisticsInputs inputs{.hidden_TH = saved[0],
                                  .head_VH = saved[1],
                                  .targets_T = saved[2],
                                  .temperature = context->saved_data["temperature"].toDouble(),
                                  .removed = context->saved_data["removed"].toInt(),
                                  .packed = reinterpret_cast<PackedWeights*>(context->saved_data["packed"].toInt())};
    const StatisticsOutputs outputs{
        .statistics = {.logprob_T = {}, .entropy_T = saved[3], .logsumexp_T = saved[4], .clamped_entropy_T = saved[5]},
        .kept_logsumexp_T = saved[6],
        .threshold_T = saved[7],
        .tie_limit_T = saved[8]};
    const auto or_zero = [&](std::size_t i) {
      return i < gradients.size() && gradients[i].defined() ? gradients[i].contiguous() : at::zeros_like(saved[4]);
    };
    const InputGradients g =
        backward_of(inputs, static_cast<StatisticsPath>(context->saved_data["path"].toInt()), outputs,
                    {.logprob_T = or_zero(0),
                     .entropy_T = or_zero(1),
                     .logsumexp_T = or_zero(2),
                     .clamped_entropy_T = inputs.removed > 0 ? or_zero(3) : at::Tensor(),
                     .of_head = context->needs_input_grad(1)});
    return {g.hidden_TH, g.head_VH, at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

void offer_device_passes(DevicePassesOf passes_of) { offered_passes = passes_of; }

std::int64_t StatisticsInputs::strip_rows() const {
  const std::int64_t logits = head_VH.scalar_type() == at::kBFloat16 ? 1 << 24 : 1 << 22;
  return std::clamp<std::int64_t>(logits / head_VH.size(0), 16, 256) * (hidden_TH.is_cuda() ? 16 : 1);
}

std::int64_t clamped_entries(double share, std::int64_t vocabulary) {
  return std::min(static_cast<std::int64_t>(share * static_cast<double>(vocabulary)), vocabulary - 1);
}

TokenStatistics token_statistics(const at::Tensor& hidden_TH, const at::Tensor& head_VH, const at::Tensor& targets_T,
                                 const StatisticsOptions& options) {
  CARNOT_CHECK_EQ(hidden_TH.size(0), targets_T.numel());
  CARNOT_CHECK_GT(options.temperature, 0.0);
  const StatisticsPath path = path_of(hidden_TH, options.kernels);
  const at::Tensor hidden = hidden_TH.contiguous();
  const at::Tensor targets = targets_T.to(hidden.device()).contiguous();
  const std::int64_t removed = clamped_entries(options.entropy_clamp, head_VH.size(0));
  TokenStatistics out;
  if (at::GradMode::is_enabled()) {
    const auto outputs = StatisticsFunction::apply(hidden, head_VH, targets, options.temperature, removed,
                                                   options.packed, std::int64_t{path});
    out = {outputs[0], outputs[1], outputs[2], removed > 0 ? outputs[3] : at::Tensor()};
  } else {
    out = forward_of({hidden, head_VH, targets, options.temperature, removed, options.packed}, path).statistics;
  }
  // A share too small to remove an entry leaves the whole softmax.
  if (options.entropy_clamp > 0 && removed == 0) out.clamped_entropy_T = out.entropy_T;
  return out;
}

TokenStatistics token_statistics(const at::Tensor& hidden_TH, const Model& model, const at::Tensor& targets_T,
                                 StatisticsOptions options) {
  options.kernels = model.kernels();
  options.packed = &model.packed_weights();
  return token_statistics(hidden_TH, model.head(), targets_T, options);
}

}  // namespace carnot
