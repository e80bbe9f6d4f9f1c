#include "carnot/core/hf/gguf_weights.h"

#include <map>

#include "carnot/core/base/limits.h"
#include "carnot/core/hf/gguf_model.h"

namespace carnot {
namespace {

void name_layer(const ModelConfig& config, int layer, std::vector<GgufWeightName>& all) {
  const std::string from = "blk." + std::to_string(layer) + ".", to = "model.layers." + std::to_string(layer) + ".";
  const std::int64_t hidden = config.hidden_size, inner = config.intermediate_size, head = config.head_dim;
  const std::int64_t queries = config.num_heads * head, keys = config.num_kv_heads * head;
  const bool interleaved = config.family == "llama" || config.family == "mistral";
  const int query_heads = interleaved ? config.num_heads : 0, key_heads = interleaved ? config.num_kv_heads : 0;
  const auto add = [&](const char* stored, const char* name, std::vector<std::int64_t> shape, int heads = 0) {
    all.push_back({from + stored, to + name, std::move(shape), heads});
  };
  add("attn_norm.weight", "input_layernorm.weight", {hidden});
  add("attn_q.weight", "self_attn.q_proj.weight", {queries, hidden}, query_heads);
  add("attn_k.weight", "self_attn.k_proj.weight", {keys, hidden}, key_heads);
  add("attn_v.weight", "self_attn.v_proj.weight", {keys, hidden});
  if (config.attention_bias()) {
    add("attn_q.bias", "self_attn.q_proj.bias", {queries});
    add("attn_k.bias", "self_attn.k_proj.bias", {keys});
    add("attn_v.bias", "self_attn.v_proj.bias", {keys});
  }
  if (config.query_key_norm() == QueryKeyNorm::Head) {
    add("attn_q_norm.weight", "self_attn.q_norm.weight", {head});
    add("attn_k_norm.weight", "self_attn.k_norm.weight", {head});
  }
  add("attn_output.weight", "self_attn.o_proj.weight", {hidden, queries});
  add("ffn_norm.weight", "post_attention_layernorm.weight", {hidden});
  add("ffn_gate.weight", "mlp.gate_proj.weight", {inner, hidden});
  add("ffn_up.weight", "mlp.up_proj.weight", {inner, hidden});
  add("ffn_down.weight", "mlp.down_proj.weight", {hidden, inner});
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t size : shape) text += (text.size() == 1 ? "" : ", ") + std::to_string(size);
  return text + "]";
}

}  // namespace

std::int64_t GgufWeightName::folder_row(std::int64_t row) const {
  if (interleaved_heads == 0) return row;
  const std::int64_t head_rows = shape[0] / interleaved_heads;
  const std::int64_t head = row / head_rows, in_head = row % head_rows;
  return head * head_rows + in_head % 2 * (head_rows / 2) + in_head / 2;
}

std::vector<GgufWeightName> gguf_weight_names(const ModelConfig& config) {
  const std::int64_t hidden = config.hidden_size, words = config.vocab_size;
  std::vector<GgufWeightName> all{{"token_embd.weight", "model.embed_tokens.weight", {words, hidden}}};
  for (int layer = 0; layer < config.num_layers; ++layer) name_layer(config, layer, all);
  all.push_back({"output_norm.weight", "model.norm.weight", {hidden}});
  if (!config.tied_head) all.push_back({"output.weight", "lm_head.weight", {words, hidden}});
  return all;
}

Result<std::vector<GgufWeight>> gguf_weights(const GgufFile& file, const ModelConfig& config, const std::string& name) {
  std::map<std::string_view, const GgufTensor*> stored;
  for (const GgufTensor& tensor : file.tensors)
    if (tensor.name != kGgufRotaryFactors) stored.emplace(tensor.name, &tensor);
  std::vector<std::string> problems;
  const auto problem = [&](std::string_view tensor, const std::string& what) {
    if (problems.size() < kMaxProblems) problems.push_back(name + ": tensor '" + std::string(tensor) + "' " + what);
  };
  std::vector<GgufWeight> weights;
  for (GgufWeightName& expected : gguf_weight_names(config)) {
    const auto found = stored.extract(expected.stored);
    if (!found)
      problem(expected.stored, "is missing");
    else if (found.mapped()->shape != expected.shape)
      problem(expected.stored,
              "has shape " + shape_text(found.mapped()->shape) + ", expected " + shape_text(expected.shape));
    else
      weights.push_back({std::move(expected), found.mapped()});
  }
  for (const auto& [surplus, tensor] : stored) problem(surplus, "is not one of this model's");
  if (!problems.empty()) return join_errors(problems);
  return weights;
}

}  // namespace carnot
