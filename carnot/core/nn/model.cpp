#include "carnot/core/nn/model.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>

#include "carnot/core/base/check.h"
#include "carnot/core/nn/elementwise.h"
#include "carnot/core/nn/expert_mlp.h"
#include "carnot/core/nn/gated_delta_net.h"
#include "carnot/core/nn/linear.h"
#include "carnot/core/nn/random_weights.h"
#include "carnot/core/nn/recompute.h"
#include "carnot/core/nn/rotary.h"
#include "carnot/core/nn/self_attention.h"
#include "carnot/core/nn/short_convolution.h"

namespace carnot {
namespace {

at::Tensor zeros(at::IntArrayRef shape, const at::TensorOptions& options) { return at::zeros(shape, options); }

/// A product of its own, never fused with an addition, so that its bits do not depend on where a row is.
at::Tensor scaled(const at::Tensor& x, double scale) { return scale == 1 ? x : x * scale; }

/// The query's projection holds, head by head, queries and then gates: into queries, keys and values, and the gates.
std::pair<at::Tensor, at::Tensor> split_gate(const ModelConfig& config, const at::Tensor& projected_TD) {
  const std::int64_t rows = projected_TD.size(0), queries = config.query_width();
  const auto parts = projected_TD.split_with_sizes({queries, projected_TD.size(1) - queries}, 1);
  const auto halves = parts[0].reshape({rows, config.num_heads, 2, config.head_dim}).unbind(2);
  return {at::cat({halves[0].reshape({rows, -1}), parts[1]}, 1), halves[1].reshape({rows, -1})};
}

}  // namespace

void mark_trained(const at::Tensor& weight, bool on) {
  weight.set_requires_grad(on);
  if (on && weight.scalar_type() == at::kBFloat16) weight.set_grad_dtype(at::kFloat);
}

/// What a model computes with besides its weights.
struct ModelWorkspace {
  PackedWeights packed;
  std::vector<RotaryTable> rotary;  // of ModelPlan::rotary
};

void Model::make_mixer(const LayerPlan& plan, const at::TensorOptions& options, Layer& layer) const {
  const std::int64_t h = config_.hidden_size, d = config_.head_dim;
  const std::int64_t q = config_.num_heads * d, kv = config_.num_kv_heads * d;
  if (plan.mixer == Mixer::ShortConvolution) {
    layer.input = zeros({3 * h, h}, options);
    layer.convolution = zeros({h, 1, plan.taps}, options);
    layer.output = zeros({h, h}, options);
    return;
  }
  if (plan.mixer == Mixer::GatedDelta) return make_delta(plan, options, layer);
  layer.query = zeros({config_.query_width(), h}, options);
  layer.key = zeros({kv, h}, options);
  layer.value = zeros({kv, h}, options);
  layer.output = zeros({h, q}, options);
  if (config_.attention_bias()) {
    layer.query_bias = zeros({q}, options);
    layer.key_bias = zeros({kv}, options);
    layer.value_bias = zeros({kv}, options);
  }
  if (plan.query_key_norm != QueryKeyNorm::None) {
    const bool whole = plan.query_key_norm == QueryKeyNorm::Whole;
    layer.query_norm = zeros({whole ? q : d}, options);
    layer.key_norm = zeros({whole ? kv : d}, options);
  }
}

void Model::make_delta(const LayerPlan& plan, const at::TensorOptions& options, Layer& layer) const {
  const std::int64_t h = config_.hidden_size, heads = config_.delta_value_heads, values = config_.delta_values();
  layer.input = zeros({config_.delta_width(), h}, options);
  layer.input_z = zeros({values, h}, options);
  layer.input_b = zeros({heads, h}, options);
  layer.input_a = zeros({heads, h}, options);
  layer.convolution = zeros({config_.delta_width(), 1, plan.taps}, options);
  layer.log_rate = zeros({heads}, options);
  layer.step_bias = zeros({heads}, options);
  layer.delta_norm = zeros({config_.delta_value_dim}, options);
  layer.output = zeros({h, values}, options);
}

Model::Layer Model::make_layer(const LayerPlan& plan, const at::TensorOptions& options) const {
  const std::int64_t h = config_.hidden_size, f = plan.mlp_width;
  Layer layer{.mixer = plan.mixer};
  make_mixer(plan, options, layer);
  if (plan.experts > 0) layer.router = zeros({plan.experts, h}, options);
  const auto matrix = [&] { return zeros({f, h}, options); };
  for (int e = 0; e < plan.experts; ++e)
    layer.experts.push_back({.gate = matrix(), .up = matrix(), .down = zeros({h, f}, options)});
  if (plan.experts == 0) {
    layer.gate = matrix();
    layer.up = matrix();
    layer.down = zeros({h, f}, options);
  }
  const auto norm = [&](std::string_view name) { return name.empty() ? at::Tensor() : zeros({h}, options); };
  layer.before_attention = norm(plan.norms.before_attention);
  layer.after_attention = norm(plan.norms.after_attention);
  layer.before_mlp = norm(plan.norms.before_mlp);
  layer.after_mlp = norm(plan.norms.after_mlp);
  return layer;
}

Model Model::uninitialised(const ModelConfig& config, const at::TensorOptions& options) {
  const Status shape = check_model_config(config);
  CARNOT_CHECK(shape.ok(), shape.ok() ? "" : shape.error().message);
  Model model(config);
  const std::int64_t h = config.hidden_size;
  model.embedding_ = zeros({config.vocab_size, h}, options);
  model.final_norm_ = zeros({h}, options);
  if (!config.tied_head) model.head_ = zeros({config.vocab_size, h}, options);
  for (const LayerPlan& layer : model.plan_.layers) model.layers_.push_back(model.make_layer(layer, options));
  model.workspace_ = std::make_shared<ModelWorkspace>();
  return model;
}

Model::Model(const ModelConfig& config, std::uint64_t seed, const at::TensorOptions& options, double init_std)
    : Model(uninitialised(config, options)) {
  fill_with_random_weights(parameters(), config, seed, init_std);
}

at::TensorOptions Model::options() const { return embedding_.options().requires_grad(false); }

const at::Tensor& Model::head() const { return config_.tied_head ? embedding_ : head_; }

at::Tensor Model::Layer::bias(Projection projection) const {
  switch (projection) {
    case Projection::Query: return query_bias;
    case Projection::Key: return key_bias;
    case Projection::Value: return value_bias;
    default: return {};
  }
}

LinearWeights Model::weights_of(const Layer& layer, std::initializer_list<Projection> projections) const {
  LinearWeights all{.adapter_scale = adapter_scale()};
  std::size_t i = 0;
  for (const Projection projection : projections) {
    all.weight[i] = layer.weight(projection);
    all.bias[i] = layer.bias(projection);
    all.adapter[i++] = layer.adapter(projection);
  }
  return all;
}

ExpertProducts Model::products_of(const ExpertWeights& expert) const {
  const auto& [gate, up, down] = expert.adapters;
  return {.gate_up = {.weight = {expert.gate, expert.up}, .adapter = {gate, up}, .adapter_scale = adapter_scale()},
          .down = {.weight = {expert.down}, .adapter = {down}, .adapter_scale = adapter_scale()}};
}

at::Tensor Model::normed(const at::Tensor& x_TH, const at::Tensor& norm) const {
  if (!norm.defined()) return x_TH;
  return rms_norm(x_TH, norm, {.epsilon = config_.rms_norm_epsilon, .offset = plan_.norm_offset}, kernels_);
}

at::Tensor Model::norm_and_linear(const at::Tensor& x_TH, const at::Tensor& norm, const LinearWeights& weights) const {
  if (!norm.defined()) return linear(x_TH, weights, workspace_->packed, kernels_);
  const RmsNormOptions options{.epsilon = config_.rms_norm_epsilon, .offset = plan_.norm_offset};
  const auto input = [x_TH, norm, options, kernels = kernels_] { return rms_norm(x_TH, norm, options, kernels); };
  return linear(input(), weights, workspace_->packed, kernels_, input);
}

at::Tensor Model::mixer_output(int index, const at::Tensor& x_TH, const at::Tensor& positions_T,
                               const AttentionPlan& plan) const {
  switch (plan_.layers[index].mixer) {
    case Mixer::ShortConvolution: return convolution_output(index, x_TH, plan);
    case Mixer::GatedDelta: return delta_output(index, x_TH, plan);
    case Mixer::Attention: break;
  }
  return attention_output(index, x_TH, positions_T, plan);
}

at::Tensor Model::convolution_output(int index, const at::Tensor& x_TH, const AttentionPlan& plan) const {
  const Layer& layer = layers_[index];
  const at::Tensor bcx = norm_and_linear(x_TH, layer.before_attention, weights_of(layer, {Projection::Input}));
  const auto convolved = [bcx, weight = layer.convolution, plan, index, kernels = kernels_] {
    return short_convolution(bcx, weight, plan, index, kernels);
  };
  return linear(convolved(), weights_of(layer, {Projection::Output}), workspace_->packed, kernels_, convolved);
}

at::Tensor Model::delta_output(int index, const at::Tensor& x_TH, const AttentionPlan& plan) const {
  const Layer& layer = layers_[index];
  const LinearWeights wide = weights_of(layer, {Projection::Input, Projection::InputZ}),
                      narrow = weights_of(layer, {Projection::InputB, Projection::InputA});
  const at::Tensor qkvz = norm_and_linear(x_TH, layer.before_attention, wide),
                   ba = norm_and_linear(x_TH, layer.before_attention, narrow);
  const at::Tensor gate_up = gated_delta_net(
      config_, qkvz, ba, {layer.convolution, layer.log_rate, layer.step_bias, layer.delta_norm}, plan, index, kernels_);
  return gated_linear(gate_up, Activation::Silu, weights_of(layer, {Projection::Output}));
}

at::Tensor Model::attention_output(int index, const at::Tensor& x_TH, const at::Tensor& positions_T,
                                   const AttentionPlan& plan) const {
  const Layer& layer = layers_[index];
  const LayerPlan& what = plan_.layers[index];
  const at::Tensor projected = norm_and_linear(
      x_TH, layer.before_attention, weights_of(layer, {Projection::Query, Projection::Key, Projection::Value}));
  const auto [qkv, gate] = what.gated ? split_gate(config_, projected) : std::pair(projected, at::Tensor());
  const at::Tensor mixed = self_attention(config_, what, qkv, {layer.query_norm, layer.key_norm, plan_.norm_offset},
                                          workspace_->rotary[what.rotary], positions_T, plan, kernels_);
  const LinearWeights output = weights_of(layer, {Projection::Output});
  if (what.gated) return gated_linear(at::cat({gate, mixed}, 1), Activation::Sigmoid, output);
  return linear(mixed, output, workspace_->packed, kernels_);
}

at::Tensor Model::layer_output(int index, const at::Tensor& x_TH, const at::Tensor& positions_T,
                               const AttentionPlan& plan, ExpertBalance* balance) const {
  const Layer& layer = layers_[index];
  const LayerPlan& what = plan_.layers[index];
  const at::Tensor mixed = mixer_output(index, x_TH, positions_T, plan);
  const at::Tensor x = x_TH + scaled(normed(mixed, layer.after_attention), what.residual_scale);
  return x + scaled(normed(mlp_output(index, x, balance), layer.after_mlp), what.residual_scale);
}

at::Tensor Model::mlp_output(int index, const at::Tensor& x_TH, ExpertBalance* balance) const {
  const Layer& layer = layers_[index];
  const LayerPlan& what = plan_.layers[index];
  if (what.experts > 0) {
    const auto products = [&](std::int64_t expert) { return products_of(layer.experts[expert]); };
    return expert_mlp(normed(x_TH, layer.before_mlp), layer.router, products, what, workspace_->packed, kernels_,
                      balance);
  }
  const at::Tensor gate_up =
      norm_and_linear(x_TH, layer.before_mlp, weights_of(layer, {Projection::Gate, Projection::Up}));
  return gated_linear(gate_up, what.activation, weights_of(layer, {Projection::Down}));
}

at::Tensor Model::gated_linear(const at::Tensor& gate_up, Activation activation, const LinearWeights& weights) const {
  const auto gated = [gate_up, activation, kernels = kernels_] { return gated_product(gate_up, activation, kernels); };
  return linear(gated(), weights, workspace_->packed, kernels_, gated);
}

at::Tensor Model::embedded(const at::Tensor& tokens_T) const {
  const at::Tensor x = embed(embedding_, tokens_T, kernels_);
  if (plan_.embedding_scale == 1) return x;
  return scaled(x, at::scalar_tensor(plan_.embedding_scale, at::kDouble).to(x.scalar_type()).item<double>());
}

at::Tensor Model::hidden(const at::Tensor& tokens_T, const at::Tensor& positions_T, const AttentionPlan& plan,
                         ExpertBalance* balance) const {
  CARNOT_CHECK_EQ(tokens_T.numel(), positions_T.numel());
  CARNOT_CHECK_GT(tokens_T.numel(), 0);
  const std::int64_t needed = positions_T.max().item<std::int64_t>() + 1;
  if (workspace_->rotary.empty() || workspace_->rotary[0].cosine.size(0) < needed) {
    const at::NoGradGuard no_grad;
    workspace_->rotary.clear();
    for (const RotarySettings& settings : plan_.rotary)
      workspace_->rotary.push_back(rotary_table(settings, std::max<std::int64_t>(1024, 2 * needed), options()));
  }
  at::Tensor x = embedded(tokens_T);
  const bool recomputed = checkpoint_activations_ && at::GradMode::is_enabled();
  for (int i = 0; i < config_.num_layers; ++i) {
    const auto layer = [this, i, positions_T, plan, balance](const at::Tensor& in) {
      return layer_output(i, in, positions_T, plan, balance);
    };
    x = recomputed ? recompute_in_backward(x, layer) : layer(x);
  }
  return scaled(normed(x, final_norm_), plan_.hidden_scale);
}

LogitRows Model::logit_rows(const at::Tensor& hidden_TH, std::span<const float> inverse_temperature_T) const {
  return head_logits(hidden_TH, head(), inverse_temperature_T, workspace_->packed, kernels_);
}

at::Tensor Model::logits(const at::Tensor& hidden_TH) const {
  return logit_rows(hidden_TH, std::vector<float>(static_cast<std::size_t>(hidden_TH.size(0)), 1.0f)).logits_BV;
}

PackedWeights& Model::packed_weights() const { return workspace_->packed; }

void Model::keep_packed_weights_alone() {
  if (kernels_ == KernelChoice::Portable || !own_kernels_take(embedding_)) return;
  const at::NoGradGuard no_grad;
  for (const Layer& layer : layers_) {
    std::vector<std::vector<at::Tensor>> products = {{layer.output}};
    if (layer.input_z.defined())
      products.insert(products.end(), {{layer.input, layer.input_z}, {layer.input_b, layer.input_a}});
    else if (layer.input.defined())
      products.push_back({layer.input});
    else
      products.push_back({layer.query, layer.key, layer.value});
    if (layer.gate.defined()) products.insert(products.end(), {{layer.gate, layer.up}, {layer.down}});
    for (const ExpertWeights& expert : layer.experts)
      products.insert(products.end(), {{expert.gate, expert.up}, {expert.down}});
    for (const auto& weights : products) keep_packed_alone(weights, workspace_->packed);
  }
  packed_alone_ = true;
}

std::vector<NamedTensor> Model::parameters() const {
  CARNOT_CHECK(!packed_alone_, "the weights' rows were given back");
  std::vector<NamedTensor> all;
  const auto list = [&](const std::string& name, const at::Tensor& tensor, bool is_table = false) {
    if (tensor.defined()) all.push_back({name, tensor, is_table});
  };
  list("model.embed_tokens.weight", embedding_, true);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    const std::string prefix = "model.layers." + std::to_string(i) + ".";
    const NormNames& norms = plan_.layers[i].norms;
    const auto list_norm = [&](std::string_view name, const at::Tensor& norm) {
      list(prefix + std::string(name) + ".weight", norm);
    };
    list_norm(norms.before_attention, layer.before_attention);
    list(prefix + "self_attn.q_proj.weight", layer.query);
    list(prefix + "self_attn.q_proj.bias", layer.query_bias);
    list(prefix + "self_attn.k_proj.weight", layer.key);
    list(prefix + "self_attn.k_proj.bias", layer.key_bias);
    list(prefix + "self_attn.v_proj.weight", layer.value);
    list(prefix + "self_attn.v_proj.bias", layer.value_bias);
    list(prefix + "self_attn.q_norm.weight", layer.query_norm);
    list(prefix + "self_attn.k_norm.weight", layer.key_norm);
    const std::string mixer = prefix + std::string(mixer_name(layer.mixer));
    list(mixer + ".in_proj.weight", layer.input);
    list(mixer + ".in_proj_z.weight", layer.input_z);
    list(mixer + ".in_proj_b.weight", layer.input_b);
    list(mixer + ".in_proj_a.weight", layer.input_a);
    list(mixer + ".conv.weight", layer.convolution, true);
    list(mixer + ".A_log", layer.log_rate);
    list(mixer + ".dt_bias", layer.step_bias);
    list(mixer + ".norm.weight", layer.delta_norm);
    list(mixer + ".o_proj.weight", layer.output);
    list_norm(norms.after_attention, layer.after_attention);
    list_norm(norms.before_mlp, layer.before_mlp);
    list(prefix + "mlp.gate_proj.weight", layer.gate);
    list(prefix + "mlp.up_proj.weight", layer.up);
    list(prefix + "mlp.down_proj.weight", layer.down);
    list(prefix + "mlp.gate.weight", layer.router);
    for (std::size_t e = 0; e < layer.experts.size(); ++e) {
      const std::string expert = prefix + "mlp.experts." + std::to_string(e) + ".";
      list(expert + "gate_proj.weight", layer.experts[e].gate);
      list(expert + "up_proj.weight", layer.experts[e].up);
      list(expert + "down_proj.weight", layer.experts[e].down);
    }
    list_norm(norms.after_mlp, layer.after_mlp);
  }
  list("model.norm.weight", final_norm_);
  list("lm_head.weight", head_, true);
  return all;
}

void Model::requires_grad(bool on) {
  for (const NamedTensor& weight : parameters()) mark_trained(weight.tensor, on && !has_adapters());
  for (const NamedTensor& adapter : adapters()) mark_trained(adapter.tensor, on);
}

Model Model::clone() const {
  Model copy = uninitialised(config_, options());
  copy.kernels_ = kernels_;
  copy.checkpoint_activations_ = checkpoint_activations_;
  const auto from = parameters(), to = copy.parameters();
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < from.size(); ++i) to[i].tensor.copy_(from[i].tensor);
  copy.copy_adapters(*this);
  return copy;
}

}  // namespace carnot
