#include "carnot/core/hf/gguf_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <set>

#include "carnot/core/base/limits.h"
#include "carnot/core/gguf/metadata.h"

namespace carnot {
namespace {

constexpr std::string_view kRotaryFactors = "rope_freqs.weight";
constexpr std::string_view kArchitectures[] = {"llama", "qwen2", "qwen3"};

/// Keys of an architecture that are read, or say nothing that changes what is computed.
constexpr std::string_view kKnownKeys[] = {"attention.causal",
                                           "attention.head_count",
                                           "attention.head_count_kv",
                                           "attention.key_length",
                                           "attention.layer_norm_rms_epsilon",
                                           "attention.sliding_window",
                                           "attention.value_length",
                                           "block_count",
                                           "context_length",
                                           "embedding_length",
                                           "expert_count",
                                           "expert_used_count",
                                           "feed_forward_length",
                                           "rope.dimension_count",
                                           "rope.freq_base",
                                           "rope.scaling.attn_factor",
                                           "rope.scaling.factor",
                                           "rope.scaling.finetuned",
                                           "rope.scaling.original_context_length",
                                           "rope.scaling.type",
                                           "tensor_data_layout",
                                           "vocab_size"};

/// Keys of one architecture, and what is expected of them.
class ArchitectureReader {
 public:
  ArchitectureReader(const GgufFile& file, const std::string& name, std::string_view architecture)
      : metadata_(file, name), prefix_(std::string(architecture) + ".") {}

  GgufMetadata& metadata() { return metadata_; }
  std::string key(std::string_view ending) const { return prefix_ + std::string(ending); }

  int count(std::string_view ending, int otherwise) {
    const auto value = metadata_.integer(key(ending));
    if (!value) return otherwise;
    if (*value >= 0 && *value <= std::numeric_limits<int>::max()) return static_cast<int>(*value);
    metadata_.problem(key(ending), "expected an integer of at least 0, got " + std::to_string(*value));
    return otherwise;
  }
  int needed_count(std::string_view ending) {
    metadata_.require(key(ending));
    return count(ending, 0);
  }
  double number(std::string_view ending, double otherwise) { return metadata_.number(key(ending)).value_or(otherwise); }
  void only(std::string_view ending, int computed, const std::string& why) {
    if (const int found = count(ending, computed); found != computed)
      metadata_.problem(key(ending), "is " + std::to_string(found) + ", expected " + std::to_string(computed) + why);
  }
  void refuse_unknown_keys() {
    for (const auto& [key, value] : metadata_.file().values)
      if (key.starts_with(prefix_) &&
          std::find(std::begin(kKnownKeys), std::end(kKnownKeys), key.substr(prefix_.size())) == std::end(kKnownKeys))
        metadata_.problem(key, "is not known; what it asks for is not computed");
  }

 private:
  GgufMetadata metadata_;
  std::string prefix_;
};

const GgufTensor* find_tensor(const GgufFile& file, std::string_view name) {
  for (const GgufTensor& tensor : file.tensors)
    if (tensor.name == name) return &tensor;
  return nullptr;
}

/// What Llama 3.1 divides the i-th of `half` frequencies by.
double llama3_factor(const ModelConfig& config, int i, int half) {
  const RotaryScaling& scaling = config.rope_scaling;
  const double wavelength = 2 * std::numbers::pi * std::pow(config.rope_theta, static_cast<double>(i) / half);
  const double turns = scaling.original_max_positions / wavelength;
  const double smooth =
      (turns - scaling.low_frequency_factor) / (scaling.high_frequency_factor - scaling.low_frequency_factor);
  if (smooth > 1) return 1;
  return smooth < 0 ? scaling.factor : 1 / ((1 - smooth) / scaling.factor + smooth);
}

/// Llama 3.1's scaling is stored as the numbers that it divides frequencies by. They are the published models', with
/// the largest as the factor, or are refused.
void read_rotary_factors(ArchitectureReader& read, ModelConfig& config) {
  const GgufTensor* stored = find_tensor(read.metadata().file(), kRotaryFactors);
  if (stored == nullptr) return;
  const int half = config.head_dim / 2;
  if (stored->shape != std::vector<std::int64_t>{half} || half == 0)
    return read.metadata().problem(kRotaryFactors, "expected " + std::to_string(half) + " numbers");
  std::vector<float> factors(static_cast<std::size_t>(half));
  dequantize(*stored->type, stored->bytes, factors);
  const float largest = *std::max_element(factors.begin(), factors.end());
  if (std::all_of(factors.begin(), factors.end(), [](float factor) { return factor == 1; })) return;
  config.rope_scaling = {.kind = "llama3",
                         .factor = largest,
                         .original_max_positions = 8192,
                         .low_frequency_factor = 1,
                         .high_frequency_factor = 4};
  for (int i = 0; i < half; ++i) {
    const double expected = llama3_factor(config, i, half), found = factors[static_cast<std::size_t>(i)];
    if (!(std::abs(found - expected) <= 1e-3 * expected))
      return read.metadata().problem(kRotaryFactors,
                                     "is not Llama 3.1's scaling of 8192 positions by factors from 1 "
                                     "to 4, the only one that is computed");
  }
}

void read_rotary(ArchitectureReader& read, ModelConfig& config) {
  GgufMetadata& metadata = read.metadata();
  config.rope_theta = read.number("rope.freq_base", 10000);
  read.only("rope.dimension_count", config.head_dim, ", the size of a head: part of a head is not rotated");
  read_rotary_factors(read, config);
  const std::string key = read.key("rope.scaling.type"), type = metadata.text(key).value_or("none");
  if (type == "none") return;
  if (type != "linear" && type != "yarn")
    return metadata.problem(key, "expected \"none\", \"linear\" or \"yarn\", the only kinds that are computed");
  if (config.rope_scaling.kind != "default")
    return metadata.problem(key, "comes on top of " + std::string(kRotaryFactors));
  RotaryScaling& scaling = config.rope_scaling;
  scaling.kind = type;
  metadata.require(read.key("rope.scaling.factor"));
  scaling.factor = read.number("rope.scaling.factor", 1);
  if (read.number("rope.scaling.attn_factor", 1) != 1)
    metadata.problem(read.key("rope.scaling.attn_factor"), "expected 1, the only value that is computed");
  if (type == "linear") return;
  scaling.original_max_positions = read.count("rope.scaling.original_context_length", config.max_positions);
  scaling.attention_factor = 0.1 * std::log(scaling.factor) + 1;
}

void read_shape(ArchitectureReader& read, ModelConfig& config) {
  config.num_layers = read.needed_count("block_count");
  config.hidden_size = read.needed_count("embedding_length");
  config.intermediate_size = read.needed_count("feed_forward_length");
  config.num_heads = read.needed_count("attention.head_count");
  config.num_kv_heads = read.count("attention.head_count_kv", config.num_heads);
  config.head_dim = read.count("attention.key_length", config.hidden_size / std::max(config.num_heads, 1));
  config.max_positions = read.needed_count("context_length");
  read.metadata().require(read.key("attention.layer_norm_rms_epsilon"));
  config.rms_norm_epsilon = read.number("attention.layer_norm_rms_epsilon", 0);
  read.only("attention.value_length", config.head_dim, ", the size of keys");
  read.only("expert_count", 0, ": mixtures of experts are not computed");
  if (const int window = read.count("attention.sliding_window", 0); window > 0 && window < config.max_positions)
    read.metadata().problem(read.key("attention.sliding_window"),
                            "is " + std::to_string(window) + "; attention over a window is not computed");
  if (!read.metadata().flag(read.key("attention.causal")).value_or(true))
    read.metadata().problem(read.key("attention.causal"), "expected true");
}

/// Names and shapes of one weight in both worlds.
struct Expected {
  std::string stored{};
  std::string name{};
  std::vector<std::int64_t> shape{};
  int interleaved_heads = 0;
};

void expect_layer(const ModelConfig& config, int layer, std::vector<Expected>& all) {
  const std::string from = "blk." + std::to_string(layer) + ".", to = "model.layers." + std::to_string(layer) + ".";
  const std::int64_t hidden = config.hidden_size, inner = config.intermediate_size, head = config.head_dim;
  const std::int64_t queries = config.num_heads * head, keys = config.num_kv_heads * head;
  const bool interleaved = config.family == "llama";
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
  if (config.query_key_norm()) {
    add("attn_q_norm.weight", "self_attn.q_norm.weight", {head});
    add("attn_k_norm.weight", "self_attn.k_norm.weight", {head});
  }
  add("attn_output.weight", "self_attn.o_proj.weight", {hidden, queries});
  add("ffn_norm.weight", "post_attention_layernorm.weight", {hidden});
  add("ffn_gate.weight", "mlp.gate_proj.weight", {inner, hidden});
  add("ffn_up.weight", "mlp.up_proj.weight", {inner, hidden});
  add("ffn_down.weight", "mlp.down_proj.weight", {hidden, inner});
}

std::vector<Expected> expected_weights(const ModelConfig& config) {
  const std::int64_t hidden = config.hidden_size, words = config.vocab_size;
  std::vector<Expected> all{{"token_embd.weight", "model.embed_tokens.weight", {words, hidden}}};
  for (int layer = 0; layer < config.num_layers; ++layer) expect_layer(config, layer, all);
  all.push_back({"output_norm.weight", "model.norm.weight", {hidden}});
  if (!config.tied_head) all.push_back({"output.weight", "lm_head.weight", {words, hidden}});
  return all;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t size : shape) text += (text.size() == 1 ? "" : ", ") + std::to_string(size);
  return text + "]";
}

}  // namespace

Result<ModelConfig> gguf_model_config(const GgufFile& file, const std::string& name) {
  constexpr const char* kArchitecture = "general.architecture";
  GgufMetadata general(file, name);
  general.require(kArchitecture);
  const std::string architecture = general.text(kArchitecture).value_or("");
  if (!general.any_problems() &&
      std::find(std::begin(kArchitectures), std::end(kArchitectures), architecture) == std::end(kArchitectures))
    general.problem(kArchitecture, "expected llama, qwen2 or qwen3, got '" + architecture + "'");
  if (general.integer("split.count").value_or(1) > 1)
    general.problem("split.count",
                    "the file is one part of several; expected a whole model "
                    "(llama-gguf-split --merge makes one of the parts)");
  if (general.any_problems()) return general.error();

  ArchitectureReader read(file, name, architecture);
  ModelConfig config{.family = architecture};
  read.refuse_unknown_keys();
  read_shape(read, config);
  if (!read.metadata().any_problems()) read_rotary(read, config);
  if (const GgufTensor* embedding = find_tensor(file, "token_embd.weight");
      embedding && embedding->shape.size() == 2 && embedding->shape[0] <= kMaxModelSize)
    config.vocab_size = static_cast<int>(embedding->shape[0]);
  config.tied_head = find_tensor(file, "output.weight") == nullptr;
  if (read.metadata().any_problems()) return read.metadata().error();
  if (const Status status = check_model_config(config); !status) return Error{name + ":\n" + status.error().message};
  return config;
}

Result<std::vector<GgufWeight>> gguf_weights(const GgufFile& file, const ModelConfig& config, const std::string& name) {
  std::map<std::string_view, const GgufTensor*> stored;
  for (const GgufTensor& tensor : file.tensors)
    if (tensor.name != kRotaryFactors) stored.emplace(tensor.name, &tensor);
  std::vector<std::string> problems;
  const auto problem = [&](std::string_view tensor, const std::string& what) {
    if (problems.size() < kMaxProblems) problems.push_back(name + ": tensor '" + std::string(tensor) + "' " + what);
  };
  std::vector<GgufWeight> weights;
  for (Expected& expected : expected_weights(config)) {
    const auto found = stored.extract(expected.stored);
    if (!found)
      problem(expected.stored, "is missing");
    else if (found.mapped()->shape != expected.shape)
      problem(expected.stored,
              "has shape " + shape_text(found.mapped()->shape) + ", expected " + shape_text(expected.shape));
    else
      weights.push_back({std::move(expected.name), found.mapped(), expected.interleaved_heads});
  }
  for (const auto& [surplus, tensor] : stored) problem(surplus, "is not one of this model's");
  if (!problems.empty()) return join_errors(problems);
  return weights;
}

}  // namespace carnot
