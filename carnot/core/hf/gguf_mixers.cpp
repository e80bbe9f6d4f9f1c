#include "carnot/core/hf/gguf_mixers.h"

#include <algorithm>

#include "carnot/core/base/limits.h"
#include "carnot/core/hf/family_keys.h"

namespace carnot {
namespace {

constexpr std::string_view kKeyHeads = "attention.head_count_kv";
constexpr std::string_view kTaps = "shortconv.l_cache";
constexpr std::string_view kInterval = "full_attention_interval";
constexpr std::string_view kSections = "rope.dimension_sections";
constexpr std::string_view kInner = "ssm.inner_size";

/// A key that is a number of the gated delta rule.
struct DeltaKey {
  std::string_view ending{};
  int ModelConfig::* member = nullptr;
};
constexpr DeltaKey kDeltaSizes[] = {{"ssm.conv_kernel", &ModelConfig::convolution_width},
                                    {"ssm.group_count", &ModelConfig::delta_key_heads},
                                    {"ssm.time_step_rank", &ModelConfig::delta_value_heads},
                                    {"ssm.state_size", &ModelConfig::delta_key_dim}};

/// Layers without heads of keys have a short convolution.
void read_convolutions(GgufKeyReader& read, ModelConfig& config) {
  read.require(kTaps);
  config.convolution_width = read.count(kTaps, 0);
  if (config.num_layers > kMaxModelLayers) return;
  std::vector<LayerKind> kinds = kinds_of(config);
  const auto heads = read.metadata().integers(read.key(kKeyHeads)).value_or(std::vector<std::int64_t>());
  const std::int64_t most = heads.empty() ? 0 : *std::max_element(heads.begin(), heads.end());
  const bool uniform =
      std::all_of(heads.begin(), heads.end(), [&](std::int64_t count) { return count == 0 || count == most; });
  if (heads.size() != kinds.size() || !uniform || most < 1 || most > kMaxModelSize)
    return read.problem(kKeyHeads,
                        "expected 0 or one same number for each of " + std::to_string(kinds.size()) + " layers");
  config.num_kv_heads = static_cast<int>(most);
  for (std::size_t i = 0; i < kinds.size(); ++i)
    kinds[i].mixer = heads[i] == 0 ? Mixer::ShortConvolution : Mixer::Attention;
  set_layers(std::move(kinds), config);
}

void write_convolutions(GgufKeyWriter& write, const ModelConfig& config) {
  write.count(kTaps, config.convolution_width);
  std::vector<std::int32_t> heads;
  for (const LayerKind& kind : kinds_of(config))
    heads.push_back(kind.mixer == Mixer::ShortConvolution ? 0 : config.num_kv_heads);
  write.set(kKeyHeads, heads);
}

/// The pairs of a head's numbers that text rotates take the positions of three axes by turns, so many pairs each; text
/// has the same position on all of them, and further pairs would stay as they are.
void check_sections(GgufKeyReader& read, const ModelConfig& config) {
  const auto sections = read.metadata().integers(read.key(kSections));
  if (!sections) return;
  const std::int64_t pairs = config.rotary_dim() / 2;
  bool rotates_all = sections->size() >= 3;
  std::int64_t sum = 0;
  for (const std::int64_t section : *sections) sum += std::clamp<std::int64_t>(section, 0, kMaxModelSize);
  for (std::int64_t axis = 0; rotates_all && axis < 3; ++axis)
    rotates_all = (*sections)[static_cast<std::size_t>(axis)] >= (std::min(pairs, sum) - axis + 2) / 3;
  if (!rotates_all)
    read.problem(kSections, "expected three numbers that take all of " + std::to_string(pairs) + " pairs by turns");
}

/// [11, 11, 10, 0] for the published models' 32 pairs.
std::vector<std::int32_t> sections_of(const ModelConfig& config) {
  const int pairs = config.rotary_dim() / 2;
  return {(pairs + 2) / 3, (pairs + 1) / 3, pairs / 3, 0};
}

void read_delta_rule(GgufKeyReader& read, ModelConfig& config) {
  for (const DeltaKey& size : kDeltaSizes) {
    read.require(size.ending);
    config.*size.member = read.count(size.ending, 0);
  }
  const int inner = read.count(kInner, 0), heads = std::max(config.delta_value_heads, 1);
  config.delta_value_dim = inner / heads;
  if (inner % heads != 0)
    read.problem(kInner, "is not a multiple of ssm.time_step_rank, the number of heads of values");
  config.num_layers -= std::min(read.count("nextn_predict_layers", 0), config.num_layers);
  read.require(kInterval);
  const int every = read.count(kInterval, 0);
  if (every < 1) return read.problem(kInterval, "expected an integer above 0");
  if (config.num_layers > kMaxModelLayers) return;
  std::vector<LayerKind> kinds = kinds_of(config);
  for (std::size_t i = 0; i < kinds.size(); ++i)
    kinds[i].mixer = (static_cast<int>(i) + 1) % every == 0 ? Mixer::Attention : Mixer::GatedDelta;
  set_layers(std::move(kinds), config);
}

void write_delta_rule(GgufKeyWriter& write, const ModelConfig& config) {
  for (const DeltaKey& size : kDeltaSizes) write.count(size.ending, config.*size.member);
  write.count(kInner, config.delta_values());
  write.set(kSections, sections_of(config));
  std::vector<bool> attends;
  for (const LayerKind& kind : kinds_of(config)) attends.push_back(kind.mixer == Mixer::Attention);
  const int turns = turns_of(attends);
  write.count(kInterval, turns > 0 ? turns : config.num_layers + 1);
  if (turns < 0) write.problem("layer_types: attention does not come in every so many layers, as llama.cpp has it");
  if (config.delta_value_dim != config.delta_key_dim)
    write.problem("linear_value_head_dim is not linear_key_head_dim, which llama.cpp does not compute");
}

}  // namespace

bool lists_key_heads(const GgufArchitecture& row) { return row.has(kTaps); }

void read_gguf_mixers(GgufKeyReader& read, ModelConfig& config) {
  if (read.row().has(kTaps)) read_convolutions(read, config);
  if (read.row().has(kInterval)) read_delta_rule(read, config);
}

void check_gguf_sections(GgufKeyReader& read, const ModelConfig& config) {
  if (read.row().has(kSections)) check_sections(read, config);
}

void write_gguf_mixers(GgufKeyWriter& write, const ModelConfig& config) {
  if (write.row().has(kTaps)) write_convolutions(write, config);
  if (write.row().has(kInterval)) write_delta_rule(write, config);
}

}  // namespace carnot
