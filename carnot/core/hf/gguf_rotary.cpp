#include "carnot/core/hf/gguf_rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "carnot/core/hf/gguf_mixers.h"
#include "carnot/core/hf/rotary_family_keys.h"

namespace carnot {
namespace {

constexpr std::string_view kLlama3Factors = "rope_freqs.weight";
constexpr std::string_view kLongFactors = "rope_factors_long.weight";
constexpr std::string_view kShortFactors = "rope_factors_short.weight";

/// YaRN's factor of cosine and sine, as llama.cpp has it: without a multiplier, and divided by the same with one.
double gguf_yarn_factor(double factor, double log_multiplier) {
  const double usual = 0.1 * std::log(factor) + 1;
  return usual / (0.1 * log_multiplier * std::log(factor) + 1);
}

bool nearly(double a, double b) { return std::abs(a - b) <= 1e-6 * std::abs(b); }

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

/// Empty, with a problem, if there is no such tensor of one number for each frequency.
std::vector<float> read_factors_of(GgufKeyReader& read, std::string_view name, int count) {
  const GgufTensor* stored = find_gguf_tensor(read.metadata().file(), name);
  if (stored == nullptr || stored->shape != std::vector<std::int64_t>{count} || count == 0) {
    read.metadata().problem(name, "expected " + std::to_string(count) + " numbers");
    return {};
  }
  std::vector<float> factors(static_cast<std::size_t>(count));
  dequantize(*stored->type, stored->bytes, factors);
  return factors;
}

/// Llama 3.1's scaling is stored as the numbers that it divides frequencies by. They are the published models', with
/// the largest as the factor, or are refused.
void read_llama3_factors(GgufKeyReader& read, ModelConfig& config) {
  if (find_gguf_tensor(read.metadata().file(), kLlama3Factors) == nullptr) return;
  if (!read.row().frequency_factors)
    return read.metadata().problem(kLlama3Factors, "is not computed in " + std::string(read.row().name));
  const std::vector<float> factors = read_factors_of(read, kLlama3Factors, config.head_dim / 2);
  if (std::all_of(factors.begin(), factors.end(), [](float factor) { return factor == 1; })) return;
  config.rope_scaling = {.kind = "llama3",
                         .factor = *std::max_element(factors.begin(), factors.end()),
                         .original_max_positions = 8192,
                         .low_frequency_factor = 1,
                         .high_frequency_factor = 4};
  const int half = config.head_dim / 2;
  for (int i = 0; i < half; ++i) {
    const double computed = llama3_factor(config, i, half);
    if (!(std::abs(factors[static_cast<std::size_t>(i)] - computed) <= 1e-3 * computed))
      return read.metadata().problem(kLlama3Factors,
                                     "is not Llama 3.1's scaling of 8192 positions by factors from 1 "
                                     "to 4, the only one that is computed");
  }
}

void read_yarn_keys(GgufKeyReader& read, const ModelConfig& config, RotaryScaling& scaling) {
  constexpr std::string_view kLogMultiplier = "rope.scaling.yarn_log_multiplier";
  scaling.original_max_positions = read.count("rope.scaling.original_context_length", config.max_positions);
  scaling.beta_fast = read.number("rope.scaling.yarn_beta_fast", scaling.beta_fast);
  scaling.beta_slow = read.number("rope.scaling.yarn_beta_slow", scaling.beta_slow);
  const double multiplier = read.row().has(kLogMultiplier) ? read.number(kLogMultiplier, 0) : 0;
  if (multiplier < 0) return read.problem(kLogMultiplier, "expected a number of at least 0");
  scaling.attention_factor = gguf_yarn_factor(scaling.factor, multiplier);
  if (!nearly(read.number("rope.scaling.yarn_attn_factor", scaling.attention_factor), scaling.attention_factor))
    read.problem("rope.scaling.yarn_attn_factor",
                 "expected " + std::to_string(scaling.attention_factor) + ", which llama.cpp computes in any case");
}

void read_scaling(GgufKeyReader& read, ModelConfig& config) {
  const std::string type = read.metadata().text(read.key("rope.scaling.type")).value_or("none");
  if (read.number("rope.scaling.attn_factor", 1) != 1)
    read.problem("rope.scaling.attn_factor", "expected 1, the only value that is computed");
  if (type == "none") return;
  if (type != "linear" && type != "yarn")
    return read.problem("rope.scaling.type",
                        "expected \"none\", \"linear\" or \"yarn\", the only kinds that are computed");
  if (config.rope_scaling.kind != "default")
    return read.problem("rope.scaling.type", "comes on top of " + std::string(kLlama3Factors));
  RotaryScaling& scaling = config.rope_scaling;
  scaling.kind = type;
  read.require("rope.scaling.factor");
  scaling.factor = read.number("rope.scaling.factor", 1);
  if (type == "yarn") read_yarn_keys(read, config, scaling);
}

/// Without tensors, nothing is scaled.
void read_longrope_factors(GgufKeyReader& read, ModelConfig& config) {
  const std::string type = read.metadata().text(read.key("rope.scaling.type")).value_or("none");
  if (type != "none" && type != "longrope")
    return read.problem("rope.scaling.type", "expected \"none\" or \"longrope\", the only kinds that are computed");
  const GgufFile& file = read.metadata().file();
  const double attention_factor = read.number("rope.scaling.attn_factor", 1);
  if (type == "none" && find_gguf_tensor(file, kLongFactors) == nullptr &&
      find_gguf_tensor(file, kShortFactors) == nullptr) {
    if (attention_factor != 1)
      read.problem("rope.scaling.attn_factor", "expected 1 without " + std::string(kLongFactors));
    return;
  }
  const int half = config.rotary_dim() / 2;
  const std::vector<float> shorts = read_factors_of(read, kShortFactors, half),
                           longs = read_factors_of(read, kLongFactors, half);
  const int original = read.count("rope.scaling.original_context_length", config.max_positions);
  if (original < 2) return read.problem("rope.scaling.original_context_length", "expected an integer above 1");
  const double usual = longrope_attention_factor(static_cast<double>(config.max_positions) / original, original);
  config.rope_scaling = {.kind = "longrope",
                         .original_max_positions = original,
                         .attention_factor = nearly(attention_factor, usual) ? usual : attention_factor,
                         .short_factors{shorts.begin(), shorts.end()},
                         .long_factors{longs.begin(), longs.end()},
                         .long_max_positions = config.max_positions};
  if (config.rope_scaling.changes_beyond_max_positions())
    config.max_positions = std::min(config.max_positions, original);
}

void read_rotated_part(GgufKeyReader& read, ModelConfig& config) {
  if (!find_model_family(config.family)->partial_rotary)
    return read.only("rope.dimension_count", config.head_dim, ", the size of a head: part of a head is not rotated");
  const int dim = read.count("rope.dimension_count", config.head_dim);
  config.rotary_share = static_cast<double>(dim) / std::max(config.head_dim, 1);
  if (dim < 2 || dim % 2 != 0 || config.rotary_dim() != dim)
    read.problem("rope.dimension_count", "is " + std::to_string(dim) + ", expected an even number up to " +
                                             std::to_string(config.head_dim) + ", the size of a head");
}

void read_window_theta(GgufKeyReader& read, ModelConfig& config) {
  if (read.row().windows != GgufWindows::Turns) return;
  const bool own = read.row().window_rope_theta > 0;
  config.window_rope_theta = own ? read.row().window_rope_theta : config.rope_theta;
  const double stored = read.number("rope.freq_base_swa", config.window_rope_theta);
  if (!own && stored != config.window_rope_theta)
    return read.problem("rope.freq_base_swa", "expected rope.freq_base, which llama.cpp takes in any case");
  config.window_rope_theta = stored;
}

void read_query_growth(GgufKeyReader& read, RotaryScaling& scaling) {
  if (!read.row().has("attention.temperature_scale")) return;
  scaling.query_growth = read.number("attention.temperature_scale", 0);
  scaling.original_max_positions = read.count("rope.scaling.original_context_length", scaling.original_max_positions);
}

void write_yarn(GgufKeyWriter& write, const RotaryScaling& scaling) {
  write.count("rope.scaling.original_context_length", scaling.original_max_positions);
  bool said = false;
  for (const double multiplier : {0.0, 1.0}) {
    const bool sayable = multiplier == 0 || write.row().has("rope.scaling.yarn_log_multiplier");
    if (said || !sayable || !nearly(scaling.attention_factor, gguf_yarn_factor(scaling.factor, multiplier))) continue;
    if (multiplier != 0) write.number("rope.scaling.yarn_log_multiplier", multiplier);
    said = true;
  }
  const RotaryScaling usual;
  if (!said || scaling.beta_fast != usual.beta_fast || scaling.beta_slow != usual.beta_slow || !scaling.truncate)
    write.problem(
        "expected YaRN with the usual attention_factor, beta_fast, beta_slow and "
        "truncate, the only ones that are written");
}

void write_window_theta(GgufKeyWriter& write, const ModelConfig& config) {
  if (write.row().windows != GgufWindows::Turns) return;
  const double theta = config.window_rope_theta > 0 ? config.window_rope_theta : config.rope_theta;
  if (write.row().window_rope_theta > 0)
    write.number("rope.freq_base_swa", theta);
  else if (theta != config.rope_theta)
    write.problem("rope_parameters: layers with a window have another rope_theta, which llama.cpp does not compute");
}

}  // namespace

void read_gguf_rotary(GgufKeyReader& read, ModelConfig& config) {
  config.rope_theta = read.number("rope.freq_base", 10000);
  read_rotated_part(read, config);
  check_gguf_sections(read, config);
  read_window_theta(read, config);
  read_llama3_factors(read, config);
  if (find_model_family(config.family)->longrope) return read_longrope_factors(read, config);
  read_scaling(read, config);
  read_query_growth(read, config.rope_scaling);
}

void write_gguf_rotary(GgufKeyWriter& write, const ModelConfig& config) {
  const RotaryScaling& scaling = config.rope_scaling;
  write.count("rope.dimension_count", config.rotary_dim());
  write.number("rope.freq_base", config.rope_theta);
  write_window_theta(write, config);
  if (scaling.kind == "llama3" && !write.row().frequency_factors)
    write.problem("rope_scaling: \"llama3\" is not computed by llama.cpp in " + std::string(write.row().name));
  if (scaling.kind == "linear" || scaling.kind == "yarn") {
    write.set("rope.scaling.type", scaling.kind);
    write.number("rope.scaling.factor", scaling.factor);
  }
  if (scaling.kind == "yarn") write_yarn(write, scaling);
  if (find_model_family(config.family)->longrope) {
    const bool scaled = scaling.kind == "longrope";
    write.count("rope.scaling.original_context_length", scaled ? scaling.original_max_positions : config.max_positions);
    if (scaled) write.number("rope.scaling.attn_factor", scaling.attention_factor);
  }
  if (!write.row().has("attention.temperature_scale") || scaling.original_max_positions == 0) return;
  write.count("rope.scaling.original_context_length", scaling.original_max_positions);
  if (scaling.query_growth > 0) write.number("attention.temperature_scale", scaling.query_growth);
}

std::vector<GgufRotaryTensor> gguf_rotary_tensors(const ModelConfig& config) {
  const RotaryScaling& scaling = config.rope_scaling;
  if (scaling.kind == "longrope")
    return {{kLongFactors, {scaling.long_factors.begin(), scaling.long_factors.end()}},
            {kShortFactors, {scaling.short_factors.begin(), scaling.short_factors.end()}}};
  if (scaling.kind != "llama3") return {};
  std::vector<float> factors;
  const int half = config.head_dim / 2;
  for (int i = 0; i < half; ++i) factors.push_back(static_cast<float>(llama3_factor(config, i, half)));
  return {{kLlama3Factors, factors}};
}

bool is_gguf_rotary_tensor(std::string_view name) {
  return name == kLlama3Factors || name == kLongFactors || name == kShortFactors;
}

const GgufTensor* find_gguf_tensor(const GgufFile& file, std::string_view name) {
  for (const GgufTensor& tensor : file.tensors)
    if (tensor.name == name) return &tensor;
  return nullptr;
}

}  // namespace carnot
