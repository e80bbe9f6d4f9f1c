#include "carnot/core/nn/gated_delta_net.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/custom_function.h>

#include <memory>
#include <vector>

#include "carnot/core/base/check.h"
#include "carnot/core/kernel/recurrent/gated_delta.h"
#include "carnot/core/nn/elementwise.h"
#include "carnot/core/nn/kv_cache.h"
#include "carnot/core/nn/linear.h"
#include "carnot/core/nn/number_types.h"
#include "carnot/core/nn/packed_rows.h"
#include "carnot/core/nn/portable_gated_delta.h"
#include "carnot/core/nn/silu_convolution.h"

namespace carnot {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

template <class T>
kernel::GatedDeltaLayer<T> delta_layer(const ModelConfig& config) {
  return {.key_heads = config.delta_key_heads,
          .value_heads = config.delta_value_heads,
          .key_dim = config.delta_key_dim,
          .value_dim = config.delta_value_dim};
}

/// A layer with its weights, widened; they outlive it here.
template <class S>
struct DeltaCall {
  using T = Computed<S>;

  DeltaCall(const ModelConfig& config, const DeltaInputs& in)
      : log_rate(in.log_rate.detach().to(scalar_type_of<T>()).contiguous()),
        step_bias(in.step_bias.detach().to(scalar_type_of<T>()).contiguous()),
        layer(delta_layer<T>(config)),
        input{.qkv = data_of<S>(in.qkv_TD), .a = data_of<S>(in.a_TV), .b = data_of<S>(in.b_TV)} {
    layer.log_rate = data_of<T>(log_rate);
    layer.step_bias = data_of<T>(step_bias);
  }

  at::Tensor log_rate, step_bias;
  kernel::GatedDeltaLayer<T> layer;
  kernel::GatedDeltaInput<S> input;
};

std::vector<kernel::RecurrentRows> recurrent_rows(const PackedAttention& plan) {
  return packed_rows_of<kernel::RecurrentRows>(plan);
}

template <class S>
at::Tensor delta_forward(const ModelConfig& config, const DeltaInputs& in,
                         std::span<const kernel::RecurrentRows> sequences, std::span<Computed<S>* const> states = {}) {
  const DeltaCall<S> call(config, in);
  at::Tensor out = at::empty({in.qkv_TD.size(0), config.delta_values()}, in.qkv_TD.options());
  kernel::gated_delta_forward<S>(call.layer, call.input, sequences, states, data_of<S>(out));
  return out;
}

template <class S>
at::Tensor delta_paged(const ModelConfig& config, const DeltaInputs& in, const PagedAttention& plan, int layer) {
  std::vector<kernel::RecurrentRows> rows;
  std::vector<Computed<S>*> states;
  for (const PagedRows& sequence : plan.sequences) {
    CARNOT_CHECK_GE(sequence.state, 0);
    rows.push_back({.begin = sequence.begin, .rows = sequence.end - sequence.begin});
    const at::Tensor state = plan.cache->states(layer).select(0, sequence.state);
    if (sequence.past == 0) state.zero_();
    states.push_back(data_of<Computed<S>>(state));
  }
  return delta_forward<S>(config, in, rows, states);
}

template <class S>
variable_list delta_backward(const ModelConfig& config, const DeltaInputs& in, const PackedAttention& plan,
                             const at::Tensor& dout) {
  using T = Computed<S>;
  const DeltaCall<S> call(config, in);
  const at::Tensor dqkv = at::empty_like(in.qkv_TD), da = at::empty_like(in.a_TV), db = at::empty_like(in.b_TV);
  const at::Tensor drate = at::zeros_like(call.log_rate), dbias = at::zeros_like(call.step_bias);
  kernel::gated_delta_backward<S>(call.layer, call.input, recurrent_rows(plan), data_of<S>(dout),
                                  {.qkv = data_of<S>(dqkv),
                                   .a = data_of<S>(da),
                                   .b = data_of<S>(db),
                                   .log_rate = data_of<T>(drate),
                                   .step_bias = data_of<T>(dbias)});
  return {dqkv, da, db, drate, dbias, at::Tensor()};
}

/// What the gradient needs in addition to tensors saved by autograd.
struct DeltaPlan : torch::CustomClassHolder {
  DeltaPlan(const ModelConfig& of, const PackedAttention& as) : config(of), plan(as) {}
  ModelConfig config;
  PackedAttention plan;
};

struct GatedDeltaFunction : torch::autograd::Function<GatedDeltaFunction> {
  static constexpr const char* kPlan = "plan";

  static at::Tensor forward(AutogradContext* context, const at::Tensor& qkv, const at::Tensor& a, const at::Tensor& b,
                            const at::Tensor& log_rate, const at::Tensor& step_bias,
                            const c10::intrusive_ptr<DeltaPlan>& plan) {
    context->save_for_backward({qkv, a, b, log_rate, step_bias});
    context->saved_data[kPlan] = c10::IValue::make_capsule(plan);
    return with_number_type(qkv.scalar_type(), [&]<class S>() {
      return delta_forward<S>(plan->config, {qkv, a, b, log_rate, step_bias}, recurrent_rows(plan->plan));
    });
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto capsule = context->saved_data[kPlan].toCapsule();
    const auto& plan = *static_cast<DeltaPlan*>(capsule.get());
    const DeltaInputs in{saved[0], saved[1], saved[2], saved[3], saved[4]};
    const at::Tensor dout = gradients[0].contiguous();
    return with_number_type(saved[0].scalar_type(),
                            [&]<class S>() { return delta_backward<S>(plan.config, in, plan.plan, dout); });
  }
};

at::Tensor own_delta(const ModelConfig& config, const DeltaInputs& in, const AttentionPlan& plan, int layer) {
  if (const auto* paged = std::get_if<PagedAttention>(&plan))
    return with_number_type(in.qkv_TD.scalar_type(),
                            [&]<class S>() { return delta_paged<S>(config, in, *paged, layer); });
  const auto& packed = std::get<PackedAttention>(plan);
  if (at::GradMode::is_enabled())
    return GatedDeltaFunction::apply(in.qkv_TD, in.a_TV, in.b_TV, in.log_rate, in.step_bias,
                                     c10::make_intrusive<DeltaPlan>(config, packed));
  return with_number_type(in.qkv_TD.scalar_type(),
                          [&]<class S>() { return delta_forward<S>(config, in, recurrent_rows(packed)); });
}

}  // namespace

std::int64_t delta_state_size(const ModelConfig& config, bool in_double) {
  return in_double ? delta_layer<double>(config).state_size() : delta_layer<float>(config).state_size();
}

at::Tensor gated_delta_net(const ModelConfig& config, const at::Tensor& qkvz_TD, const at::Tensor& ba_TV,
                           const GatedDeltaWeights& weights, const AttentionPlan& plan, int layer,
                           KernelChoice kernels) {
  const std::int64_t rows = qkvz_TD.size(0), values = config.delta_values();
  const auto parts = qkvz_TD.split_with_sizes({config.delta_width(), values}, 1);
  const auto gates = ba_TV.chunk(2, 1);
  const DeltaInputs in{.qkv_TD = silu_convolution(parts[0], weights.convolution, plan, layer, kernels),
                       .a_TV = gates[1].contiguous(),
                       .b_TV = gates[0].contiguous(),
                       .log_rate = weights.log_rate,
                       .step_bias = weights.step_bias};
  const bool own = kernels == KernelChoice::Own && own_kernels_take(qkvz_TD);
  const at::Tensor out = own ? own_delta(config, in, plan, layer) : portable_gated_delta(config, in, plan, layer);
  const RmsNormOptions norm{.epsilon = config.rms_norm_epsilon};
  const at::Tensor normed = rms_norm(out.view({-1, config.delta_value_dim}), weights.norm, norm, kernels);
  return at::cat({parts[1], normed.view({rows, values})}, 1);
}

}  // namespace carnot
