#include "carnot/core/hf/gguf_weights.h"

#include <cmath>
#include <map>

#include "carnot/core/base/limits.h"
#include "carnot/core/gguf/metadata.h"
#include "carnot/core/hf/gguf_architecture.h"
#include "carnot/core/hf/gguf_rotary.h"
#include "carnot/core/hf/names_in_files.h"
#include "carnot/core/nn/layer_plan.h"

namespace carnot {
namespace {

/// Adds the weights of one layer.
class LayerNames {
 public:
  LayerNames(const ModelConfig& config, int index, std::vector<GgufWeightName>& all)
      : config_(config),
        row_(*find_gguf_architecture(config.family)),
        family_(*find_model_family(config.family)),
        from_("blk." + std::to_string(index) + "."),
        to_("model.layers." + std::to_string(index) + "."),
        hidden_(config.hidden_size),
        queries_(std::int64_t{config.num_heads} * config.head_dim),
        keys_(std::int64_t{config.num_kv_heads} * config.head_dim),
        all_(all) {}

  void add(LayerKind kind) {
    const NormNames& norms = norm_names(family_.norms);
    add_norm("attn_norm", norms.before_attention);
    add(kind.mixer);
    add_norm("post_attention_norm", norms.after_attention);
    add_norm(std::string(row_.norm_before_mlp), norms.before_mlp);
    kind.experts ? add_experts() : add_mlp();
    add_norm("post_ffw_norm", norms.after_mlp);
  }

 private:
  void add(Mixer mixer) {
    switch (mixer) {
      case Mixer::Attention: return add_attention();
      case Mixer::ShortConvolution: return add_convolution();
      case Mixer::GatedDelta: return add_delta_rule();
    }
  }

  GgufWeightName& add(const std::string& stored, const std::string& name, std::vector<std::int64_t> shape) {
    return all_.emplace_back(GgufWeightName{.stored = from_ + stored, .name = to_ + name, .shape = std::move(shape)});
  }

  void add_norm(const std::string& stored, std::string_view name, std::int64_t size = 0) {
    if (name.empty()) return;
    add(stored + ".weight", std::string(name) + ".weight", {size > 0 ? size : hidden_}).added =
        family_.norms_add_one ? 1 : 0;
  }

  void add_attention() {
    add_projections();
    add_query_key_norms();
    add("attn_output.weight", "self_attn.o_proj.weight", {hidden_, queries_});
  }

  void add_convolution() {
    add("shortconv.conv.weight", "conv.conv.weight", {hidden_, 1, config_.convolution_width}).is_f32 = true;
    add("shortconv.in_proj.weight", "conv.in_proj.weight", {3 * hidden_, hidden_});
    add("shortconv.out_proj.weight", "conv.o_proj.weight", {hidden_, hidden_});
  }

  void add_delta_rule() {
    const std::int64_t width = config_.delta_width(), values = config_.delta_values(),
                       heads = config_.delta_value_heads;
    const auto value_heads = [&](std::int64_t first, std::int64_t size) {
      return TiledHeads{first, config_.delta_key_heads, heads / config_.delta_key_heads, size};
    };
    const auto of_values = value_heads(0, config_.delta_value_dim),
               after_keys = value_heads(width - values, config_.delta_value_dim), one_each = value_heads(0, 1);
    add("attn_qkv.weight", "linear_attn.in_proj.weight", {width, hidden_}).tiled_rows = after_keys;
    add("attn_gate.weight", "linear_attn.in_proj_z.weight", {values, hidden_}).tiled_rows = of_values;
    add("ssm_beta.weight", "linear_attn.in_proj_b.weight", {heads, hidden_}).tiled_rows = one_each;
    add("ssm_alpha.weight", "linear_attn.in_proj_a.weight", {heads, hidden_}).tiled_rows = one_each;
    GgufWeightName& taps = add("ssm_conv1d.weight", "linear_attn.conv.weight", {width, 1, config_.convolution_width});
    taps.is_f32 = true;
    taps.tiled_rows = after_keys;
    GgufWeightName& rate = add("ssm_a", "linear_attn.A_log", {heads});
    rate.negative_exponential = true;
    rate.tiled_columns = one_each;
    add("ssm_dt.bias", "linear_attn.dt_bias", {heads}).tiled_columns = one_each;
    add("ssm_norm.weight", "linear_attn.norm.weight", {config_.delta_value_dim});
    add("ssm_out.weight", "linear_attn.o_proj.weight", {hidden_, values}).tiled_columns = of_values;
  }

  void add_projections() {
    if (family_.fused_projections)
      return void(add("attn_qkv.weight", "self_attn.qkv_proj.weight", {queries_ + 2 * keys_, hidden_}));
    const auto add_one = [&](const std::string& stored, const std::string& name, std::int64_t rows, int heads) {
      add(stored + ".weight", name + ".weight", {rows, hidden_}).interleaved_heads = row_.interleaved ? heads : 0;
      if (config_.attention_bias()) add(stored + ".bias", name + ".bias", {rows});
    };
    add_one("attn_q", "self_attn.q_proj", config_.query_width(), config_.num_heads);
    add_one("attn_k", "self_attn.k_proj", keys_, config_.num_kv_heads);
    add_one("attn_v", "self_attn.v_proj", keys_, 0);
  }

  void add_query_key_norms() {
    if (family_.query_key_norm == QueryKeyNorm::None) return;
    const bool whole = family_.query_key_norm == QueryKeyNorm::Whole;
    add_norm("attn_q_norm", "self_attn.q_norm", whole ? queries_ : config_.head_dim);
    add_norm("attn_k_norm", "self_attn.k_norm", whole ? keys_ : config_.head_dim);
  }

  void add_mlp() {
    const std::int64_t inner = config_.intermediate_size;
    if (family_.fused_projections) {
      add("ffn_up.weight", "mlp.gate_up_proj.weight", {2 * inner, hidden_});
    } else {
      add("ffn_gate.weight", "mlp.gate_proj.weight", {inner, hidden_});
      add("ffn_up.weight", "mlp.up_proj.weight", {inner, hidden_});
    }
    add("ffn_down.weight", "mlp.down_proj.weight", {hidden_, inner});
  }

  void add_experts() {
    const std::int64_t inner = config_.expert_width();
    const auto add_all = [&](const std::string& stored, const std::string& name, std::vector<std::int64_t> shape) {
      add(stored + "_exps.weight", "mlp.experts.*." + name + ".weight", std::move(shape)).experts = config_.num_experts;
    };
    add("ffn_gate_inp.weight", "mlp.gate.weight", {config_.num_experts, hidden_}).is_f32 = true;
    add_all("ffn_gate", "gate_proj", {inner, hidden_});
    add_all("ffn_up", "up_proj", {inner, hidden_});
    add_all("ffn_down", "down_proj", {hidden_, inner});
  }

  const ModelConfig& config_;
  const GgufArchitecture& row_;
  const ModelFamily& family_;
  std::string from_, to_;
  std::int64_t hidden_, queries_, keys_;
  std::vector<GgufWeightName>& all_;
};

/// Of a layer that predicts tokens after the next one.
bool is_of_later_layer(std::string_view tensor, const ModelConfig& config, std::int64_t later_layers) {
  for (std::int64_t i = 0; i < std::min<std::int64_t>(later_layers, kMaxModelLayers); ++i)
    if (tensor.starts_with("blk." + std::to_string(config.num_layers + i) + ".")) return true;
  return false;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t size : shape) text += (text.size() == 1 ? "" : ", ") + std::to_string(size);
  return text + "]";
}

}  // namespace

std::string GgufWeightName::part(int index) const {
  const std::size_t star = name.find('*');
  return star == std::string::npos ? name : std::string(name).replace(star, 1, std::to_string(index));
}

std::vector<std::int64_t> GgufWeightName::stored_shape() const {
  std::vector<std::int64_t> all = shape;
  if (all.size() == 3) all.erase(all.begin() + 1);
  if (experts > 0) all.insert(all.begin(), experts);
  return all;
}

std::int64_t TiledHeads::folder_index(std::int64_t index) const {
  if (index < first || heads_per_key == 1) return index;
  const std::int64_t head = (index - first) / size, in_head = (index - first) % size;
  return first + (head % keys * heads_per_key + head / keys) * size + in_head;
}

std::int64_t GgufWeightName::folder_row(std::int64_t row) const {
  if (interleaved_heads == 0) return tiled_rows.folder_index(row);
  const std::int64_t head_rows = shape[0] / interleaved_heads;
  const std::int64_t head = row / head_rows, in_head = row % head_rows;
  return head * head_rows + in_head % 2 * (head_rows / 2) + in_head / 2;
}

float GgufWeightName::folder_number(float stored) const {
  return negative_exponential ? static_cast<float>(std::log(-static_cast<double>(stored))) : stored - added;
}

float GgufWeightName::stored_number(float number) const {
  if (negative_exponential) return static_cast<float>(-std::exp(static_cast<double>(number)));
  return added == 0 ? number : number + added;  // 0 added to -0 is 0
}

std::vector<GgufWeightName> gguf_weight_names(const ModelConfig& config) {
  const std::int64_t hidden = config.hidden_size, words = config.vocab_size;
  std::vector<GgufWeightName> all{{"token_embd.weight", "model.embed_tokens.weight", {words, hidden}}};
  for (int layer = 0; layer < config.num_layers; ++layer) LayerNames(config, layer, all).add(config.layer_kind(layer));
  all.push_back({.stored = std::string(find_gguf_architecture(config.family)->final_norm) + ".weight",
                 .name = "model.norm.weight",
                 .shape = {hidden},
                 .added = find_model_family(config.family)->norms_add_one ? 1.0F : 0.0F});
  if (!config.tied_head) all.push_back({"output.weight", "lm_head.weight", {words, hidden}});
  for (GgufWeightName& weight : all) weight.name = name_in_files(*find_model_family(config.family), weight.name);
  return all;
}

Result<std::vector<GgufWeight>> gguf_weights(const GgufFile& file, const ModelConfig& config, const std::string& name) {
  const std::string later_key = std::string(find_gguf_architecture(config.family)->name) + ".nextn_predict_layers";
  const std::int64_t later_layers = GgufMetadata(file, name).integer(later_key).value_or(0);
  std::map<std::string_view, const GgufTensor*> stored;
  for (const GgufTensor& tensor : file.tensors)
    if (!is_gguf_rotary_tensor(tensor.name) && !is_of_later_layer(tensor.name, config, later_layers))
      stored.emplace(tensor.name, &tensor);
  std::vector<std::string> problems;
  const auto problem = [&](std::string_view tensor, const std::string& what) {
    if (problems.size() < kMaxProblems) problems.push_back(name + ": tensor '" + std::string(tensor) + "' " + what);
  };
  std::vector<GgufWeight> weights;
  for (GgufWeightName& expected : gguf_weight_names(config)) {
    const auto found = stored.extract(expected.stored);
    if (!found)
      problem(expected.stored, "is missing");
    else if (const auto shape = expected.stored_shape(); found.mapped()->shape != shape)
      problem(expected.stored, "has shape " + shape_text(found.mapped()->shape) + ", expected " + shape_text(shape));
    else
      weights.push_back({std::move(expected), found.mapped()});
  }
  for (const auto& [surplus, tensor] : stored) problem(surplus, "is not one of this model's");
  if (!problems.empty()) return join_errors(problems);
  return weights;
}

}  // namespace carnot
