#include "carnot/core/nn/layer_plan.h"

#include <cmath>

#include "carnot/core/base/check.h"

namespace carnot {

int NormNames::count() const {
  return !before_attention.empty() + !after_attention.empty() + !before_mlp.empty() + !after_mlp.empty();
}

const NormNames& norm_names(NormPlacement placement) {
  static constexpr NormNames kBefore{.before_attention = "input_layernorm", .before_mlp = "post_attention_layernorm"};
  static constexpr NormNames kAfter{.after_attention = "post_attention_layernorm",
                                    .after_mlp = "post_feedforward_layernorm"};
  static constexpr NormNames kBoth{.before_attention = "input_layernorm",
                                   .after_attention = "post_attention_layernorm",
                                   .before_mlp = "pre_feedforward_layernorm",
                                   .after_mlp = "post_feedforward_layernorm"};
  switch (placement) {
    case NormPlacement::Before: return kBefore;
    case NormPlacement::After: return kAfter;
    case NormPlacement::Both: break;
  }
  return kBoth;
}

std::string_view mixer_name(Mixer mixer) {
  switch (mixer) {
    case Mixer::ShortConvolution: return "conv";
    case Mixer::GatedDelta: return "linear_attn";
    case Mixer::Attention: break;
  }
  return "self_attn";
}

ModelPlan model_plan(const ModelConfig& config) {
  const ModelFamily* family = find_model_family(config.family);
  CARNOT_CHECK(family != nullptr, config.family);
  ModelPlan plan{.embedding_scale = config.embedding_scale,
                 .norm_offset = family->norms_add_one ? 1.0 : 0.0,
                 .hidden_scale = 1 / config.logits_divisor,
                 .rotary = {{.dim = config.rotary_dim(), .theta = config.rope_theta, .scaling = config.rope_scaling}}};
  if (family->scales_by_root_width) plan.embedding_scale *= std::sqrt(static_cast<double>(config.hidden_size));
  const bool own_angles = config.window_rope_theta > 0;
  if (own_angles) plan.rotary.push_back({.dim = config.rotary_dim(), .theta = config.window_rope_theta});
  const LayerPlan common{.query_key_norm = family->query_key_norm,
                         .attention_scale = config.attention_scale > 0
                                                ? config.attention_scale
                                                : 1 / std::sqrt(static_cast<double>(config.head_dim)),
                         .gated = family->gated_attention,
                         .activation = family->activation,
                         .norms = norm_names(family->norms),
                         .residual_scale = config.residual_scale};
  for (int i = 0; i < config.num_layers; ++i) {
    const LayerKind kind = config.layer_kind(i);
    LayerPlan& layer = plan.layers.emplace_back(common);
    layer.index = i;
    layer.mixer = kind.mixer;
    layer.taps = kind.mixer == Mixer::Attention ? 0 : config.convolution_width;
    layer.window = kind.windowed ? config.window : 0;
    layer.unrotated = config.head_dim - (kind.rotated ? config.rotary_dim() : 0);
    layer.rotary = kind.windowed && own_angles ? 1 : 0;
    layer.mlp_width = kind.experts ? config.expert_width() : config.intermediate_size;
    if (!kind.experts) continue;
    layer.experts = config.num_experts;
    layer.top_k = config.experts_per_token;
    layer.normalise_top_k = config.normalise_top_k;
  }
  return plan;
}

}  // namespace carnot
