#include "carnot/core/nn/self_attention.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>

#include "carnot/core/base/check.h"
#include "carnot/core/kernel/attention/attention.h"
#include "carnot/core/nn/elementwise.h"
#include "carnot/core/nn/kv_cache.h"
#include "carnot/core/nn/linear.h"
#include "carnot/core/nn/number_types.h"
#include "carnot/core/nn/packed_rows.h"
#include "carnot/core/nn/portable_attention.h"

namespace carnot {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The weights of the norms, widened, with their offset.
template <class S>
AttentionWeights computed_weights(const AttentionWeights& weights) {
  const auto type = scalar_type_of<Computed<S>>();
  if (!weights.query_norm.defined()) return weights;
  const auto computed = [&](const at::Tensor& norm) {
    const at::Tensor wide = norm.detach().to(type);
    return weights.norm_offset == 0 ? wide : wide + weights.norm_offset;
  };
  return {.query_norm = computed(weights.query_norm), .key_norm = computed(weights.key_norm)};
}

/// `weights`: computed_weights().
template <class T>
kernel::AttentionLayer<T> layer_of(const ModelConfig& config, const LayerPlan& layer, const AttentionWeights& weights,
                                   const RotaryTable& rotary) {
  return {.heads = config.num_heads,
          .kv_heads = config.num_kv_heads,
          .dim = config.head_dim,
          .scale = static_cast<T>(layer.attention_scale),
          .query_norm = weights.query_norm.defined() ? weights.query_norm.data_ptr<T>() : nullptr,
          .key_norm = weights.key_norm.defined() ? weights.key_norm.data_ptr<T>() : nullptr,
          .norm_epsilon = static_cast<T>(config.rms_norm_epsilon),
          .cosine = rotary.cosine.data_ptr<T>(),
          .sine = rotary.sine.data_ptr<T>(),
          .query_scale = rotary.query_scale.defined() ? rotary.query_scale.data_ptr<T>() : nullptr,
          .unrotated = layer.unrotated,
          .window = layer.window};
}

template <class S>
std::vector<kernel::AttentionRows<S>> rows_of(const PackedAttention& plan) {
  return packed_rows_of<kernel::AttentionRows<S>>(plan);
}

/// The rows of a paged plan; `pointers` holds the block addresses that they refer to. Only the kernels read and write
/// the blocks, in the layout of attention.h: in bfloat16, it is not KvCache's.
template <class S>
std::vector<kernel::AttentionRows<S>> rows_of(const PagedAttention& plan, const LayerPlan& layer,
                                              std::vector<S*>& pointers) {
  S* keys = data_of<S>(plan.cache->keys(layer.index));
  S* values = data_of<S>(plan.cache->values(layer.index));
  const std::int64_t block = plan.cache->keys(layer.index).stride(0);
  const auto count_of = [](const PagedRows& rows) {
    return static_cast<std::size_t>((rows.past + rows.end - rows.begin + kBlockTokens - 1) / kBlockTokens);
  };
  std::size_t total = 0;
  for (const PagedRows& rows : plan.sequences) total += count_of(rows);
  pointers.clear();
  pointers.reserve(2 * total);
  std::vector<kernel::AttentionRows<S>> all;
  for (const PagedRows& rows : plan.sequences) {
    const std::size_t count = count_of(rows);
    const std::span<const int> blocks = rows.blocks_of(layer.window > 0);
    CARNOT_CHECK_LE(count, blocks.size());
    const std::size_t first = pointers.size();
    for (S* const of : {keys, values})
      for (std::size_t b = 0; b < count; ++b) pointers.push_back(blocks[b] < 0 ? nullptr : of + blocks[b] * block);
    all.push_back({.begin = rows.begin,
                   .rows = rows.end - rows.begin,
                   .past = rows.past,
                   .key_blocks = {pointers.data() + first, count},
                   .value_blocks = {pointers.data() + first + count, count}});
  }
  return all;
}

template <class S>
at::Tensor attend_rows(const ModelConfig& config, const LayerPlan& layer, const at::Tensor& qkv,
                       const AttentionWeights& weights, const RotaryTable& rotary, const at::Tensor& positions,
                       std::span<const kernel::AttentionRows<S>> rows) {
  at::Tensor out = at::empty({qkv.size(0), config.num_heads * config.head_dim}, qkv.options());
  const AttentionWeights computed = computed_weights<S>(weights);
  kernel::attention_forward<S>(layer_of<Computed<S>>(config, layer, computed, rotary), data_of<S>(qkv),
                               positions.data_ptr<std::int64_t>(), rows, data_of<S>(out));
  return out;
}

at::Tensor attend_paged(const ModelConfig& config, const LayerPlan& layer, const at::Tensor& qkv,
                        const AttentionWeights& weights, const RotaryTable& rotary, const at::Tensor& positions,
                        const PagedAttention& plan) {
  return with_number_type(qkv.scalar_type(), [&]<class S>() {
    std::vector<S*> pointers;
    return attend_rows<S>(config, layer, qkv, weights, rotary, positions, rows_of<S>(plan, layer, pointers));
  });
}

at::Tensor attend_packed(const ModelConfig& config, const LayerPlan& layer, const at::Tensor& qkv,
                         const AttentionWeights& weights, const RotaryTable& rotary, const at::Tensor& positions,
                         const PackedAttention& plan) {
  return with_number_type(qkv.scalar_type(), [&]<class S>() {
    return attend_rows<S>(config, layer, qkv, weights, rotary, positions, rows_of<S>(plan));
  });
}

template <class S>
variable_list attend_backward(const ModelConfig& config, const LayerPlan& layer, const at::Tensor& qkv,
                              const AttentionWeights& weights, const RotaryTable& rotary, const at::Tensor& positions,
                              const PackedAttention& plan, const at::Tensor& out, const at::Tensor& dout) {
  using T = Computed<S>;
  at::Tensor dqkv = at::empty_like(qkv);
  const AttentionWeights computed = computed_weights<S>(weights);
  at::Tensor dquery_norm, dkey_norm;
  if (weights.query_norm.defined()) {
    dquery_norm = at::zeros_like(computed.query_norm);
    dkey_norm = at::zeros_like(computed.key_norm);
  }
  kernel::attention_backward<S>(layer_of<T>(config, layer, computed, rotary), data_of<S>(qkv),
                                positions.data_ptr<std::int64_t>(), rows_of<S>(plan), data_of<S>(out), data_of<S>(dout),
                                data_of<S>(dqkv), dquery_norm.defined() ? dquery_norm.data_ptr<T>() : nullptr,
                                dkey_norm.defined() ? dkey_norm.data_ptr<T>() : nullptr);
  return {dqkv, dquery_norm, dkey_norm, at::Tensor()};
}

/// What the gradient needs in addition to tensors saved by autograd.
struct PackedCall {
  ModelConfig config;
  LayerPlan layer;
  double norm_offset;
  RotaryTable rotary;
  at::Tensor positions;
  PackedAttention plan;
};

struct PackedAttentionFunction : torch::autograd::Function<PackedAttentionFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& qkv,
                            const std::optional<at::Tensor>& query_norm, const std::optional<at::Tensor>& key_norm,
                            std::shared_ptr<const PackedCall> call) {
    const AttentionWeights weights{query_norm.value_or(at::Tensor()), key_norm.value_or(at::Tensor()),
                                   call->norm_offset};
    const at::Tensor out =
        attend_packed(call->config, call->layer, qkv, weights, call->rotary, call->positions, call->plan);
    variable_list saved{qkv, out};
    if (query_norm) saved.insert(saved.end(), {*query_norm, *key_norm});
    context->save_for_backward(saved);
    context->saved_data["call"] = c10::IValue::make_capsule(c10::make_intrusive<Capsule>(std::move(call)));
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto capsule = context->saved_data["call"].toCapsule();
    const PackedCall& call = *static_cast<Capsule*>(capsule.get())->call;
    AttentionWeights weights;
    if (saved.size() > 2) weights = {saved[2], saved[3], call.norm_offset};
    const at::Tensor dout = gradients[0].contiguous();
    return with_number_type(saved[0].scalar_type(), [&]<class S>() {
      return attend_backward<S>(call.config, call.layer, saved[0], weights, call.rotary, call.positions, call.plan,
                                saved[1], dout);
    });
  }

  struct Capsule : torch::CustomClassHolder {
    explicit Capsule(std::shared_ptr<const PackedCall> held) : call(std::move(held)) {}
    std::shared_ptr<const PackedCall> call;
  };
};

at::Tensor own_attention(const ModelConfig& config, const LayerPlan& layer, const at::Tensor& qkv,
                         const AttentionWeights& weights, const RotaryTable& rotary, const at::Tensor& positions,
                         const AttentionPlan& plan) {
  if (const auto* paged = std::get_if<PagedAttention>(&plan)) {
    CARNOT_CHECK(!at::GradMode::is_enabled(), "a paged plan has no gradient");
    return attend_paged(config, layer, qkv, weights, rotary, positions, *paged);
  }
  const auto& packed = std::get<PackedAttention>(plan);
  if (at::GradMode::is_enabled()) {
    auto call =
        std::make_shared<const PackedCall>(PackedCall{config, layer, weights.norm_offset, rotary, positions, packed});
    const auto optional = [](const at::Tensor& tensor) {
      return tensor.defined() ? std::optional(tensor) : std::nullopt;
    };
    return PackedAttentionFunction::apply(qkv, optional(weights.query_norm), optional(weights.key_norm),
                                          std::move(call));
  }
  return attend_packed(config, layer, qkv, weights, rotary, positions, packed);
}

/// Queries and keys normalised over all heads.
at::Tensor with_whole_norms(const ModelConfig& config, const at::Tensor& qkv, const AttentionWeights& weights,
                            KernelChoice kernels) {
  const std::int64_t queries = config.num_heads * config.head_dim, keys = config.num_kv_heads * config.head_dim;
  const auto parts = qkv.split_with_sizes({queries, keys, keys}, 1);
  const RmsNormOptions options{.epsilon = config.rms_norm_epsilon, .offset = weights.norm_offset};
  return at::cat({rms_norm(parts[0], weights.query_norm, options, kernels),
                  rms_norm(parts[1], weights.key_norm, options, kernels), parts[2]},
                 1);
}

}  // namespace

at::Tensor self_attention(const ModelConfig& config, const LayerPlan& layer, const at::Tensor& qkv_TD,
                          const AttentionWeights& weights, const RotaryTable& rotary, const at::Tensor& positions_T,
                          const AttentionPlan& plan, KernelChoice kernels) {
  if (layer.query_key_norm == QueryKeyNorm::Whole && weights.query_norm.defined())
    return self_attention(config, layer, with_whole_norms(config, qkv_TD, weights, kernels), {}, rotary, positions_T,
                          plan, kernels);
  if (kernels == KernelChoice::Own && own_kernels_take(qkv_TD))
    return own_attention(config, layer, qkv_TD.contiguous(), weights, rotary, positions_T, plan);
  return portable_attention(config, layer, qkv_TD, weights, rotary, positions_T, plan);
}

}  // namespace carnot
