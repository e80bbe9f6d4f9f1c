#include "carnot/core/nn/model_config.h"

#include <algorithm>

#include "carnot/core/base/limits.h"
#include "carnot/core/base/saturating.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/nn/layer_plan.h"

namespace carnot {
namespace {

bool is_known_scaling(const std::string& kind, bool longrope) {
  if (kind == "default") return true;
  return longrope ? kind == "longrope" : kind == "linear" || kind == "llama3" || kind == "yarn";
}

template <class Expect>
void check_longrope(const ModelConfig& config, const Expect& expect) {
  const RotaryScaling& scaling = config.rope_scaling;
  expect(scaling.attention_factor > 0, "attention_factor of rope_scaling is not above 0");
  expect(scaling.long_max_positions >= config.max_positions, "longrope scales fewer positions than max_positions");
  const auto expect_factors = [&](const char* name, const std::vector<double>& factors) {
    const bool above = std::all_of(factors.begin(), factors.end(), [](double factor) { return factor > 0; });
    expect(above && std::ssize(factors) == config.rotary_dim() / 2,
           std::string(name) + " of rope_scaling is not " + std::to_string(config.rotary_dim() / 2) +
               " numbers above 0, one for each pair of rotated numbers of a head");
  };
  expect_factors("short_factor", scaling.short_factors);
  expect_factors("long_factor", scaling.long_factors);
  expect(!scaling.changes_beyond_max_positions() || config.max_positions <= scaling.original_max_positions,
         "max_positions is " + std::to_string(config.max_positions) + ", but beyond " +
             std::to_string(scaling.original_max_positions) + " longrope changes its factors");
}

template <class Expect>
void check_rotary(const ModelConfig& config, const Expect& expect) {
  const RotaryScaling& scaling = config.rope_scaling;
  const ModelFamily* family = find_model_family(config.family);
  expect(config.rope_theta > 0, "rope_theta is not above 0");
  expect(config.rotary_share == 1 || (family != nullptr && family->partial_rotary),
         "heads of '" + config.family + "' are not rotated in part");
  expect(
      config.rotary_share > 0 && config.rotary_share <= 1 && config.rotary_dim() >= 2 && config.rotary_dim() % 2 == 0,
      "partial_rotary_factor times head_dim is " + std::to_string(config.rotary_dim()) +
          ", expected an even number from 2 to head_dim");
  expect(is_known_scaling(scaling.kind, family != nullptr && family->longrope),
         "rope_scaling of the kind '" + scaling.kind + "' is not computed");
  expect(scaling.factor >= 1, "the factor of rope_scaling is below 1");
  expect(scaling.query_growth >= 0, "the growth of queries with their position is below 0");
  if (scaling.kind == "longrope") check_longrope(config, expect);
  if ((scaling.kind != "default" && scaling.kind != "linear") || scaling.query_growth > 0)
    expect(scaling.original_max_positions >= 1, "original_max_position_embeddings of rope_scaling is not above 0");
  if (scaling.kind == "llama3")
    expect(scaling.low_frequency_factor > 0 && scaling.low_frequency_factor < scaling.high_frequency_factor,
           "low_freq_factor of rope_scaling is not above 0 and below high_freq_factor");
  if (scaling.kind == "yarn") {
    expect(config.rope_theta > 1, "rope_theta is not above 1, which yarn needs");
    expect(scaling.attention_factor > 0, "attention_factor of rope_scaling is not above 0");
    expect(scaling.beta_slow > 0 && scaling.beta_slow <= scaling.beta_fast,
           "beta_slow of rope_scaling is not above 0 and at most beta_fast");
  }
}

template <class Expect>
void check_layers(const ModelConfig& config, const Expect& expect) {
  expect(
      config.layers.empty() || std::ssize(config.layers) == config.num_layers,
      std::to_string(config.layers.size()) + " kinds of layers for num_layers = " + std::to_string(config.num_layers));
  const ModelFamily* family = find_model_family(config.family);
  expect(config.window >= 0, "window is below 0");
  expect(config.window == 0 || family == nullptr || family->windows,
         "window is " + std::to_string(config.window) + ", but layers of '" + config.family + "' see all positions");
  expect(config.window_rope_theta >= 0, "the rotary base of windowed layers is below 0");
  expect(config.attention_scale >= 0, "the scale of attention is below 0");
  expect(config.logits_divisor > 0, "the divisor of logits is not above 0");
  expect(config.convolution_width > 0 && config.convolution_width <= kMaxConvolutionTaps,
         "convolution_width is " + std::to_string(config.convolution_width) + ", expected a number from 1 to " +
             std::to_string(kMaxConvolutionTaps));
}

template <class Expect>
void check_delta(const ModelConfig& config, const Expect& expect) {
  const std::pair<const char*, int> sizes[] = {{"delta_key_heads", config.delta_key_heads},
                                               {"delta_value_heads", config.delta_value_heads},
                                               {"delta_key_dim", config.delta_key_dim},
                                               {"delta_value_dim", config.delta_value_dim}};
  for (const auto& [name, size] : sizes)
    expect(size > 0 && size <= kMaxModelSize, std::string(name) + " is " + std::to_string(size) +
                                                  ", expected a number from 1 to " + std::to_string(kMaxModelSize));
  const Saturating width = Saturating(2) * config.delta_key_heads * config.delta_key_dim +
                           Saturating(config.delta_value_heads) * config.delta_value_dim;
  expect(width <= kMaxModelSize,
         "heads of the gated delta rule have more than " + std::to_string(kMaxModelSize) + " numbers together");
  expect(config.delta_key_heads <= 0 || config.delta_value_heads % config.delta_key_heads == 0,
         "delta_value_heads is " + std::to_string(config.delta_value_heads) +
             ", expected a multiple of delta_key_heads, " + std::to_string(config.delta_key_heads));
}

template <class Expect>
void check_experts(const ModelConfig& config, const Expect& expect) {
  const ModelFamily* family = find_model_family(config.family);
  if (family == nullptr) return;
  if (!family->experts) return expect(config.num_experts == 0, "num_experts is set, and the family has no experts");
  expect(config.num_experts > 0 && config.num_experts <= kMaxModelExperts,
         "num_experts is " + std::to_string(config.num_experts) + ", expected a number from 1 to " +
             std::to_string(kMaxModelExperts));
  expect(config.experts_per_token > 0 && config.experts_per_token <= std::max(config.num_experts, 1),
         "experts_per_token is " + std::to_string(config.experts_per_token) +
             ", expected a number from 1 to num_experts, " + std::to_string(config.num_experts));
  expect(config.expert_size >= 0 && config.expert_size <= kMaxModelSize,
         "expert_size is " + std::to_string(config.expert_size) + ", expected a number from 0 to " +
             std::to_string(kMaxModelSize));
}

}  // namespace

LayerKind ModelConfig::layer_kind(int layer) const {
  if (!layers.empty()) return layers[static_cast<std::size_t>(layer)];
  const ModelFamily& row = *find_model_family(family);
  const auto last_of = [&](int every) { return every > 0 && (layer + 1) % every == 0; };
  return {.rotated = !last_of(row.unrotated_every),
          .windowed = row.windows && window > 0 && !last_of(row.full_every),
          .experts = row.experts,
          .mixer = row.attention_every > 0 && !last_of(row.attention_every) ? row.other_mixer : Mixer::Attention};
}

std::int64_t ModelConfig::num_layers_with(Mixer mixer) const {
  if (!layers.empty())
    return std::count_if(layers.begin(), layers.end(), [&](const LayerKind& kind) { return kind.mixer == mixer; });
  const ModelFamily& row = *find_model_family(family);
  const int others = row.attention_every > 0 ? num_layers - num_layers / row.attention_every : 0;
  if (mixer == Mixer::Attention) return num_layers - others;
  return mixer == row.other_mixer ? others : 0;
}

std::int64_t ModelConfig::num_windowed_layers() const {
  if (window == 0) return 0;
  if (!layers.empty()) return std::ranges::count_if(layers, [](const LayerKind& kind) { return kind.windowed; });
  const ModelFamily& row = *find_model_family(family);
  if (!row.windows) return 0;
  return row.full_every > 0 ? num_layers - num_layers / row.full_every : num_layers;
}

std::int64_t ModelConfig::num_expert_layers() const {
  if (layers.empty()) return find_model_family(family)->experts ? num_layers : 0;
  return std::count_if(layers.begin(), layers.end(), [](const LayerKind& kind) { return kind.experts; });
}

std::int64_t ModelConfig::num_parameters() const {
  const Saturating hidden = hidden_size, queries = Saturating(num_heads) * head_dim,
                   keys = Saturating(num_kv_heads) * head_dim;
  const Saturating gates = find_model_family(family)->gated_attention ? queries : 0;
  const Saturating attention = hidden * (queries + gates + 2 * keys) + queries * hidden;
  const Saturating biases = attention_bias() ? queries + 2 * keys : 0;
  Saturating head_norms = 0;
  if (query_key_norm() == QueryKeyNorm::Head) head_norms = Saturating(2) * head_dim;
  if (query_key_norm() == QueryKeyNorm::Whole) head_norms = queries + keys;
  const Saturating norms = norm_names(find_model_family(family)->norms).count() * hidden;
  const Saturating convolution = hidden * (4 * hidden + convolution_width);
  const Saturating values = Saturating(delta_value_heads) * delta_value_dim,
                   mixed = Saturating(2) * delta_key_heads * delta_key_dim + values;
  const Saturating delta = hidden * (mixed + 2 * values + 2 * Saturating(delta_value_heads)) +
                           mixed * convolution_width + 2 * Saturating(delta_value_heads) + delta_value_dim;
  const Saturating with_experts = num_expert_layers();
  const Saturating mlps = (num_layers - with_experts) * 3 * hidden * intermediate_size +
                          with_experts * num_experts * (3 * hidden * expert_width() + hidden);
  const Saturating mixers = num_layers_with(Mixer::Attention) * (attention + biases + head_norms) +
                            num_layers_with(Mixer::ShortConvolution) * convolution +
                            num_layers_with(Mixer::GatedDelta) * delta;
  const Saturating embedding = Saturating(vocab_size) * hidden;
  return (embedding * (tied_head ? 1 : 2) + mixers + num_layers * norms + mlps + hidden).value();
}

void ModelConfig::fields(FieldVisitor& visit) {
  visit.field("family", family, "architecture, by its Hugging Face name", one_of(model_family_names()));
  visit.field("hidden_size", hidden_size, "width of the residual stream", at_least(1));
  visit.field("intermediate_size", intermediate_size, "width of the gated MLP", at_least(1));
  visit.field("num_layers", num_layers, "decoder layers", at_least(1));
  visit.field("num_heads", num_heads, "attention heads", at_least(1));
  visit.field("num_kv_heads", num_kv_heads, "heads of keys and values; divides num_heads", at_least(1));
  visit.field("head_dim", head_dim, "numbers per head; even", at_least(2));
  visit.field("rope_theta", rope_theta, "base of the rotary embedding's wavelengths", above(0));
  visit.field("rms_norm_epsilon", rms_norm_epsilon, "added to the mean square in RMSNorm", above(0));
  visit.field("window", window, "positions that windowed layers see; 0: all", at_least(0));
  visit.field("convolution_width", convolution_width, "positions that a short convolution sums over", at_least(1));
  visit.field("delta_key_heads", delta_key_heads, "heads of keys of the gated delta rule", at_least(1));
  visit.field("delta_value_heads", delta_value_heads, "heads of its values; a multiple of delta_key_heads",
              at_least(1));
  visit.field("delta_key_dim", delta_key_dim, "numbers of its keys per head", at_least(1));
  visit.field("delta_value_dim", delta_value_dim, "numbers of its values per head", at_least(1));
  visit.field("num_experts", num_experts, "experts of a layer, in families that have them", at_least(0));
  visit.field("experts_per_token", experts_per_token, "experts that compute each token", at_least(0));
  visit.field("expert_size", expert_size, "width of one expert's gated MLP; 0: intermediate_size", at_least(0));
  visit.field("normalise_top_k", normalise_top_k, "the probabilities of a token's experts are divided by their sum");
  visit.field("tied_head", tied_head, "the head is the embedding");
  visit.field("max_positions", max_positions, "longest sequence", at_least(1));
}

Status check_model_config(const ModelConfig& config) {
  std::vector<std::string> problems;
  const auto expect = [&](bool holds, const std::string& what) {
    if (!holds) problems.push_back("model: " + what);
  };
  expect(find_model_family(config.family) != nullptr,
         "family is '" + config.family + "', expected one of " + join(model_family_names()));
  const std::pair<const char*, int> sizes[] = {{"vocab_size", config.vocab_size},
                                               {"hidden_size", config.hidden_size},
                                               {"intermediate_size", config.intermediate_size},
                                               {"num_layers", config.num_layers},
                                               {"num_heads", config.num_heads},
                                               {"num_kv_heads", config.num_kv_heads},
                                               {"head_dim", config.head_dim},
                                               {"max_positions", config.max_positions}};
  for (const auto& [name, size] : sizes) {
    const int largest = std::string_view(name) == "num_layers" ? kMaxModelLayers : kMaxModelSize;
    expect(size > 0 && size <= largest, std::string(name) + " is " + std::to_string(size) +
                                            ", expected a number from 1 to " + std::to_string(largest));
  }
  expect(std::int64_t{config.num_heads} * config.head_dim <= kMaxModelSize,
         "num_heads times head_dim is more than " + std::to_string(kMaxModelSize));
  expect(config.num_kv_heads <= 0 || config.num_heads % config.num_kv_heads == 0,
         "num_heads is " + std::to_string(config.num_heads) + ", expected a multiple of num_kv_heads, " +
             std::to_string(config.num_kv_heads));
  expect(config.head_dim % 2 == 0, "head_dim is " + std::to_string(config.head_dim) + ", expected an even number");
  expect(config.num_parameters() <= kMaxModelParameters,
         "has more than " + std::to_string(kMaxModelParameters) + " weights, the most that is computed");
  expect(config.rms_norm_epsilon > 0, "rms_norm_epsilon is not above 0");
  check_rotary(config, expect);
  check_layers(config, expect);
  check_experts(config, expect);
  check_delta(config, expect);
  if (!problems.empty()) return join_errors(problems);
  return Done{};
}

}  // namespace carnot
