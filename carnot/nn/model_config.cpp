#include "carnot/nn/model_config.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

namespace carnot {
namespace {

using Json = nlohmann::ordered_json;

/// Takes values out of config.json and remembers everything that is wrong.
class ConfigReader {
 public:
  ConfigReader(const Json& json, std::string file) : json_(json), file_(std::move(file)) {}

  void problem(const std::string& key, const std::string& expected) {
    const Json* value = find(key);
    problems_.push_back(file_ + ": " + key + (value ? " is " + value->dump() : " is missing") + ", expected " + expected);
  }
  std::vector<std::string>& problems() { return problems_; }

  /// Null where the key is absent or null.
  const Json* find(const std::string& key) const {
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }

  void integer(const std::string& key, int& value, bool required) {
    const Json* found = find(key);
    if (!found && !required) return;
    if (!found || !found->is_number_integer() || found->get<std::int64_t>() < 0 ||
        found->get<std::int64_t>() > std::numeric_limits<int>::max())
      return problem(key, "an integer of at least 0");
    value = found->get<int>();
  }
  void number(const std::string& key, double& value) {
    const Json* found = find(key);
    if (!found) return;
    if (!found->is_number()) return problem(key, "a number");
    value = found->get<double>();
  }
  void boolean(const std::string& key, bool& value) {
    const Json* found = find(key);
    if (!found) return;
    if (!found->is_boolean()) return problem(key, "true or false");
    value = found->get<bool>();
  }
  /// A token id, or a list whose first one counts.
  void token(const std::string& key, int& value) {
    const Json* found = find(key);
    if (!found) return;
    if (found->is_array() && !found->empty()) found = &found->front();
    if (!found->is_number_integer()) return problem(key, "a token id or a list of them");
    value = found->get<int>();
  }
  /// Refuses every value but the one that we compute.
  void only(const std::string& key, const Json& accepted) {
    const Json* found = find(key);
    if (found && *found != accepted) problem(key, accepted.dump() + ", the only value that is computed");
  }
  void refuse(const std::string& key, const std::string& why) {
    if (find(key)) problem(key, "none: " + why);
  }

 private:
  const Json& json_;
  std::string file_;
  std::vector<std::string> problems_;
};

void read_rotary(ConfigReader& reader, ModelConfig& config) {
  reader.number("rope_theta", config.rope_theta);
  // transformers 5 moves both keys into rope_parameters.
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const Json* rotary = reader.find(key);
    if (!rotary) continue;
    if (!rotary->is_object()) {
      reader.problem(key, "an object");
      continue;
    }
    const std::string kind = rotary->contains("rope_type") ? "rope_type" : "type";
    if (rotary->contains(kind) && (*rotary)[kind] != "default")
      reader.problem(key, "rope_type \"default\": positions are not rescaled");
    if (rotary->contains("rope_theta") && (*rotary)["rope_theta"].is_number())
      config.rope_theta = (*rotary)["rope_theta"].get<double>();
  }
}

/// Keys that change the arithmetic and that we do not compute.
void refuse_unsupported(ConfigReader& reader, const ModelConfig& config) {
  reader.only("hidden_act", "silu");
  reader.only("use_sliding_window", false);
  reader.only("attention_dropout", 0.0);
  reader.only("partial_rotary_factor", 1.0);
  if (config.family == "qwen3") reader.only("attention_bias", false);
  reader.refuse("quantization_config", "weights are float32, float16 or bfloat16");
  reader.refuse("num_experts", "mixtures of experts are not computed");
  reader.refuse("num_local_experts", "mixtures of experts are not computed");
  const Json* layers = reader.find("layer_types");
  if (!layers) return;
  const bool all_full = layers->is_array() && std::all_of(layers->begin(), layers->end(),
                                                          [](const Json& type) { return type == "full_attention"; });
  if (!all_full) reader.problem("layer_types", "\"full_attention\" in every layer");
}

void read_shape(ConfigReader& reader, ModelConfig& config) {
  reader.integer("vocab_size", config.vocab_size, true);
  reader.integer("hidden_size", config.hidden_size, true);
  reader.integer("intermediate_size", config.intermediate_size, true);
  reader.integer("num_hidden_layers", config.num_layers, true);
  reader.integer("num_attention_heads", config.num_heads, true);
  config.num_kv_heads = config.num_heads;
  reader.integer("num_key_value_heads", config.num_kv_heads, false);
  // What transformers takes where the key is absent.
  config.head_dim = config.family == "qwen3" ? 128 : config.hidden_size / std::max(config.num_heads, 1);
  reader.integer("head_dim", config.head_dim, false);
  reader.number("rms_norm_eps", config.rms_norm_epsilon);
  config.tied_head = false;
  reader.boolean("tie_word_embeddings", config.tied_head);
  reader.integer("max_position_embeddings", config.max_positions, false);
  reader.token("bos_token_id", config.bos_token);
  reader.token("eos_token_id", config.eos_token);
}

}  // namespace

std::int64_t ModelConfig::num_parameters() const {
  const std::int64_t hidden = hidden_size, queries = std::int64_t{num_heads} * head_dim,
                     keys = std::int64_t{num_kv_heads} * head_dim;
  const std::int64_t attention = hidden * (queries + 2 * keys) + queries * hidden;
  const std::int64_t biases = attention_bias() ? queries + 2 * keys : 0;
  const std::int64_t head_norms = query_key_norm() ? 2 * head_dim : 0;
  const std::int64_t layer = attention + biases + head_norms + 3 * hidden * intermediate_size + 2 * hidden;
  const std::int64_t embedding = std::int64_t{vocab_size} * hidden;
  return embedding * (tied_head ? 1 : 2) + num_layers * layer + hidden;
}

void ModelConfig::fields(FieldVisitor& visit) {
  visit.field("family", family, "architecture, by its Hugging Face name", one_of({"qwen2", "qwen3"}));
  visit.field("hidden_size", hidden_size, "width of the residual stream", at_least(1));
  visit.field("intermediate_size", intermediate_size, "width of the gated MLP", at_least(1));
  visit.field("num_layers", num_layers, "decoder layers", at_least(1));
  visit.field("num_heads", num_heads, "attention heads", at_least(1));
  visit.field("num_kv_heads", num_kv_heads, "heads of keys and values; divides num_heads", at_least(1));
  visit.field("head_dim", head_dim, "numbers per head; even", at_least(2));
  visit.field("rope_theta", rope_theta, "base of the rotary embedding's wavelengths", above(0));
  visit.field("rms_norm_epsilon", rms_norm_epsilon, "added to the mean square in RMSNorm", above(0));
  visit.field("tied_head", tied_head, "the head is the embedding");
  visit.field("max_positions", max_positions, "longest sequence", at_least(1));
}

Status check_model_config(const ModelConfig& config) {
  std::vector<std::string> problems;
  const auto expect = [&](bool holds, const std::string& what) {
    if (!holds) problems.push_back("model: " + what);
  };
  expect(config.family == "qwen2" || config.family == "qwen3",
         "family is '" + config.family + "', expected qwen2 or qwen3");
  const std::pair<const char*, int> sizes[] = {
      {"vocab_size", config.vocab_size}, {"hidden_size", config.hidden_size},
      {"intermediate_size", config.intermediate_size}, {"num_layers", config.num_layers},
      {"num_heads", config.num_heads}, {"num_kv_heads", config.num_kv_heads},
      {"head_dim", config.head_dim}, {"max_positions", config.max_positions}};
  for (const auto& [name, size] : sizes)
    expect(size > 0, std::string(name) + " is " + std::to_string(size) + ", expected at least 1");
  expect(config.num_kv_heads <= 0 || config.num_heads % config.num_kv_heads == 0,
         "num_heads is " + std::to_string(config.num_heads) + ", expected a multiple of num_kv_heads, " +
             std::to_string(config.num_kv_heads));
  expect(config.head_dim % 2 == 0, "head_dim is " + std::to_string(config.head_dim) + ", expected an even number");
  expect(config.rope_theta > 0, "rope_theta is not above 0");
  expect(config.rms_norm_epsilon > 0, "rms_norm_epsilon is not above 0");
  if (!problems.empty()) return join_errors(problems);
  return Done{};
}

Result<ModelConfig> parse_model_config(std::string_view json_text, const std::string& name) {
  const Json json = Json::parse(json_text.begin(), json_text.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Error{name + ": expected a JSON object"};
  ConfigReader reader(json, name);
  ModelConfig config;
  const Json* family = reader.find("model_type");
  if (family && (*family == "qwen2" || *family == "qwen3"))
    config.family = family->get<std::string>();
  else
    reader.problem("model_type", "\"qwen2\" or \"qwen3\"");
  read_shape(reader, config);
  read_rotary(reader, config);
  refuse_unsupported(reader, config);
  if (!reader.problems().empty()) return join_errors(reader.problems());
  if (const Status status = check_model_config(config); !status) return Error{name + ":\n" + status.error().message};
  return config;
}

std::string model_config_json(const ModelConfig& config, const std::string& dtype) {
  Json json = {{"architectures", {config.family == "qwen2" ? "Qwen2ForCausalLM" : "Qwen3ForCausalLM"}},
               {"attention_dropout", 0.0},
               {"head_dim", config.head_dim},
               {"hidden_act", "silu"},
               {"hidden_size", config.hidden_size},
               {"initializer_range", 0.02},
               {"intermediate_size", config.intermediate_size},
               {"max_position_embeddings", config.max_positions},
               {"model_type", config.family},
               {"num_attention_heads", config.num_heads},
               {"num_hidden_layers", config.num_layers},
               {"num_key_value_heads", config.num_kv_heads},
               {"rms_norm_eps", config.rms_norm_epsilon},
               {"rope_theta", config.rope_theta},
               {"tie_word_embeddings", config.tied_head},
               {"torch_dtype", dtype},
               {"use_cache", true},
               {"use_sliding_window", false},
               {"vocab_size", config.vocab_size}};
  if (config.family == "qwen3") json["attention_bias"] = false;
  if (config.bos_token >= 0) json["bos_token_id"] = config.bos_token;
  if (config.eos_token >= 0) json["eos_token_id"] = config.eos_token;
  return json.dump(2) + "\n";
}

}  // namespace carnot
