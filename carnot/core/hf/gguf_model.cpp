#include "carnot/core/hf/gguf_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "carnot/core/base/check.h"
#include "carnot/core/base/limits.h"
#include "carnot/core/gguf/metadata.h"

namespace carnot {
namespace {

constexpr const char* kArchitecture = "general.architecture";

/// What llama.cpp calls a family's models. Mistral's compute the same as Llama's.
struct Architecture {
  std::string_view family{};
  std::string_view name{};
};
constexpr Architecture kArchitectures[] = {
    {"llama", "llama"}, {"mistral", "llama"}, {"qwen2", "qwen2"}, {"qwen3", "qwen3"}};

/// A key of the architecture that is a number of the shape.
struct SizeKey {
  std::string_view ending{};
  int ModelConfig::* member = nullptr;
  int (*otherwise)(const ModelConfig&) = nullptr;  ///< where the key is missing; null: it has to be there
};
constexpr SizeKey kSizes[] = {
    {"block_count", &ModelConfig::num_layers},
    {"embedding_length", &ModelConfig::hidden_size},
    {"feed_forward_length", &ModelConfig::intermediate_size},
    {"attention.head_count", &ModelConfig::num_heads},
    {"attention.head_count_kv", &ModelConfig::num_kv_heads, [](const ModelConfig& it) { return it.num_heads; }},
    {"attention.key_length", &ModelConfig::head_dim,
     [](const ModelConfig& it) { return it.hidden_size / std::max(it.num_heads, 1); }},
    {"context_length", &ModelConfig::max_positions},
};

/// Further keys of an architecture that are read, or say nothing that changes what is computed.
constexpr std::string_view kOtherKeys[] = {"attention.causal",
                                           "attention.layer_norm_rms_epsilon",
                                           "attention.sliding_window",
                                           "attention.value_length",
                                           "expert_count",
                                           "expert_used_count",
                                           "rope.dimension_count",
                                           "rope.freq_base",
                                           "rope.scaling.attn_factor",
                                           "rope.scaling.factor",
                                           "rope.scaling.finetuned",
                                           "rope.scaling.original_context_length",
                                           "rope.scaling.type",
                                           "tensor_data_layout",
                                           "vocab_size"};

bool is_known_key(std::string_view ending) {
  return std::find(std::begin(kOtherKeys), std::end(kOtherKeys), ending) != std::end(kOtherKeys) ||
         std::any_of(std::begin(kSizes), std::end(kSizes), [&](const SizeKey& size) { return size.ending == ending; });
}

/// YaRN's factor of cosine and sine, as llama.cpp has it.
double yarn_attention_factor(double factor) { return 0.1 * std::log(factor) + 1; }

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
  double number(std::string_view ending, double otherwise) { return metadata_.number(key(ending)).value_or(otherwise); }
  void only(std::string_view ending, int computed, const std::string& why) {
    if (const int found = count(ending, computed); found != computed)
      metadata_.problem(key(ending), "is " + std::to_string(found) + ", expected " + std::to_string(computed) + why);
  }
  void refuse_unknown_keys() {
    for (const auto& [key, value] : metadata_.file().values)
      if (key.starts_with(prefix_) && !is_known_key(key.substr(prefix_.size())))
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
  const GgufTensor* stored = find_tensor(read.metadata().file(), kGgufRotaryFactors);
  if (stored == nullptr) return;
  const int half = config.head_dim / 2;
  if (stored->shape != std::vector<std::int64_t>{half} || half == 0)
    return read.metadata().problem(kGgufRotaryFactors, "expected " + std::to_string(half) + " numbers");
  std::vector<float> factors(static_cast<std::size_t>(half));
  dequantize(*stored->type, stored->bytes, factors);
  const float largest = *std::max_element(factors.begin(), factors.end());
  if (std::all_of(factors.begin(), factors.end(), [](float factor) { return factor == 1; })) return;
  config.rope_scaling = {.kind = "llama3",
                         .factor = largest,
                         .original_max_positions = 8192,
                         .low_frequency_factor = 1,
                         .high_frequency_factor = 4};
  const std::vector<float> computed = gguf_rotary_factors(config);
  for (std::size_t i = 0; i < computed.size(); ++i)
    if (!(std::abs(factors[i] - computed[i]) <= 1e-3F * computed[i]))
      return read.metadata().problem(kGgufRotaryFactors,
                                     "is not Llama 3.1's scaling of 8192 positions by factors from 1 "
                                     "to 4, the only one that is computed");
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
    return metadata.problem(key, "comes on top of " + std::string(kGgufRotaryFactors));
  RotaryScaling& scaling = config.rope_scaling;
  scaling.kind = type;
  metadata.require(read.key("rope.scaling.factor"));
  scaling.factor = read.number("rope.scaling.factor", 1);
  if (read.number("rope.scaling.attn_factor", 1) != 1)
    metadata.problem(read.key("rope.scaling.attn_factor"), "expected 1, the only value that is computed");
  if (type == "linear") return;
  scaling.original_max_positions = read.count("rope.scaling.original_context_length", config.max_positions);
  scaling.attention_factor = yarn_attention_factor(scaling.factor);
}

void read_shape(ArchitectureReader& read, ModelConfig& config) {
  for (const SizeKey& size : kSizes) {
    if (size.otherwise == nullptr) read.metadata().require(read.key(size.ending));
    config.*size.member = read.count(size.ending, size.otherwise == nullptr ? 0 : size.otherwise(config));
  }
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

}  // namespace

Result<ModelConfig> gguf_model_config(const GgufFile& file, const std::string& name) {
  GgufMetadata general(file, name);
  general.require(kArchitecture);
  const std::string architecture = general.text(kArchitecture).value_or("");
  const bool is_known = std::any_of(std::begin(kArchitectures), std::end(kArchitectures),
                                    [&](const Architecture& known) { return known.name == architecture; });
  if (!general.any_problems() && !is_known)
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

void add_model(const ModelConfig& config, const std::string& name, GgufSettings& settings,
               std::vector<std::string>& problems) {
  const auto* architecture = std::find_if(std::begin(kArchitectures), std::end(kArchitectures),
                                          [&](const Architecture& known) { return known.family == config.family; });
  if (architecture == std::end(kArchitectures))
    return problems.push_back(name + ": config.json: model_type is \"" + config.family +
                              "\", expected \"llama\", \"mistral\", \"qwen2\" or \"qwen3\", the only ones that are "
                              "written as GGUF");
  if (config.window > 0)
    problems.push_back(name + ": config.json: sliding_window is " + std::to_string(config.window) +
                       "; windows are not written as GGUF");
  settings[kArchitecture] = std::string(architecture->name);
  const auto set = [&](std::string_view ending, const GgufSetting& value) {
    settings[std::string(architecture->name).append(".").append(ending)] = value;
  };
  for (const SizeKey& size : kSizes) set(size.ending, static_cast<std::uint32_t>(config.*size.member));
  set("attention.value_length", static_cast<std::uint32_t>(config.head_dim));
  set("attention.layer_norm_rms_epsilon", static_cast<float>(config.rms_norm_epsilon));
  set("vocab_size", static_cast<std::uint32_t>(config.vocab_size));
  set("rope.dimension_count", static_cast<std::uint32_t>(config.head_dim));
  set("rope.freq_base", static_cast<float>(config.rope_theta));
  const RotaryScaling& scaling = config.rope_scaling;
  if (scaling.kind != "linear" && scaling.kind != "yarn") return;
  set("rope.scaling.type", scaling.kind);
  set("rope.scaling.factor", static_cast<float>(scaling.factor));
  if (scaling.kind == "linear") return;
  set("rope.scaling.original_context_length", static_cast<std::uint32_t>(scaling.original_max_positions));
  const RotaryScaling usual;
  if (std::abs(scaling.attention_factor - yarn_attention_factor(scaling.factor)) > 1e-6 ||
      scaling.beta_fast != usual.beta_fast || scaling.beta_slow != usual.beta_slow || !scaling.truncate)
    problems.push_back(name +
                       ": config.json: expected YaRN with the usual attention_factor, beta_fast, beta_slow and "
                       "truncate, the only ones that are written");
}

std::vector<float> gguf_rotary_factors(const ModelConfig& config) {
  std::vector<float> factors;
  const int half = config.rope_scaling.kind == "llama3" ? config.head_dim / 2 : 0;
  for (int i = 0; i < half; ++i) factors.push_back(static_cast<float>(llama3_factor(config, i, half)));
  return factors;
}

}  // namespace carnot
