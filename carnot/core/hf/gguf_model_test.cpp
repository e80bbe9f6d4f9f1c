#include "carnot/core/hf/gguf_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "carnot/core/base/file.h"
#include "carnot/core/hf/gguf_weights.h"
#include "carnot/core/hf/model_config_file.h"
#include "testing/paths.h"

namespace carnot {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A recorded file whose keys and tensors a test changes.
struct Changed {
  explicit Changed(const std::string& name)
      : bytes(read_file(recorded_path("gguf/" + name + ".gguf")).value()), file(parse_gguf(bytes, name).value()) {}

  void set(std::string_view key, std::string_view value) {
    file.values[key] = {.kind = GgufKind::String, .bytes = value};
  }
  void set(std::string_view key, std::uint32_t value) {
    numbers.push_back(std::make_unique<std::uint32_t>(value));
    file.values[key] = {.kind = GgufKind::Uint32, .bytes = {reinterpret_cast<const char*>(numbers.back().get()), 4}};
  }
  void set(std::string_view key, const std::vector<std::int32_t>& values) {
    lists.push_back(values);
    file.values[key] = {.kind = GgufKind::Array,
                        .element = GgufKind::Int32,
                        .count = values.size(),
                        .bytes = {reinterpret_cast<const char*>(lists.back().data()), 4 * values.size()}};
  }
  std::string message() const {
    const auto config = gguf_model_config(file, "x.gguf");
    if (!config) return config.error().message;
    const auto weights = gguf_weights(file, *config, "x.gguf");
    return weights ? "read" : weights.error().message;
  }

  std::string bytes;
  GgufFile file;
  std::vector<std::unique_ptr<std::uint32_t>> numbers{};
  std::vector<std::vector<std::int32_t>> lists{};
};

/// Those recorded by tools/golden/gguf_files.py and gguf_families.py.
json recorded_models() {
  json all = json::parse(read_file(recorded_path("gguf/expected.json")).value());
  all.update(json::parse(read_file(recorded_path("gguf/families.json")).value()));
  for (const char* tokenizer : {"gpt2", "tekken", "sentence_piece"}) all.erase(tokenizer);
  return all;
}

ModelConfig recorded_config(const char* name) {
  return parse_model_config(recorded_models()[name]["config"].dump(), name).value();
}

TEST(GgufModel, HasTheShapeThatItsConfigJsonHas) {
  const json expected = recorded_models();
  EXPECT_EQ(expected.size(), 15u);
  for (const auto& [name, one] : expected.items()) {
    SCOPED_TRACE(name);
    const auto recorded = parse_model_config(one["config"].dump(), name);
    ASSERT_TRUE(recorded.ok()) << recorded.error().message;
    auto config = gguf_model_config(Changed(name).file, name);
    ASSERT_TRUE(config.ok()) << config.error().message;
    config->bos_token = recorded->bos_token;
    config->pad_token = recorded->pad_token;
    config->eos_tokens = recorded->eos_tokens;
    EXPECT_EQ(model_config_json(*config, "float32"), model_config_json(*recorded, "float32"));
  }
}

TEST(GgufModel, WithWhatIsNotComputedIsRefusedByName) {
  const auto with = [](const char* key, auto value, const char* name = "smollm") {
    Changed other(name);
    other.set(key, value);
    return other.message();
  };
  EXPECT_EQ(with("llama.vocab_size", 700U), "read");
  EXPECT_THAT(with("general.architecture", "gemma2"), HasSubstr("phi3, lfm2, qwen35 or mistral3, got 'gemma2'"));
  EXPECT_THAT(with("llama.embedding_scale", 2U), HasSubstr("llama.embedding_scale: is not known"));
  EXPECT_THAT(with("llama.expert_count", 8U), HasSubstr("mixtures of experts are not computed"));
  EXPECT_THAT(with("llama.attention.sliding_window", 128U), HasSubstr("attention over a window is not computed"));
  EXPECT_EQ(with("llama.attention.sliding_window", 512U), "read") << "no position is outside of it";
  EXPECT_THAT(with("llama.rope.dimension_count", 8U), HasSubstr("is 8, expected 16"));
  EXPECT_THAT(with("llama.rope.scaling.type", "longrope"), HasSubstr("expected \"none\", \"linear\" or \"yarn\""));
  EXPECT_THAT(with("llama.block_count", "two"), HasSubstr("llama.block_count: expected one integer"));
  EXPECT_THAT(with("llama.block_count", 4'000'000'000U), HasSubstr("llama.block_count"));
  EXPECT_THAT(with("split.count", std::uint32_t{3}), HasSubstr("one part of several"));
  EXPECT_THAT(with("llama.rope.scaling.type", "linear", "llama3"), HasSubstr("comes on top of rope_freqs.weight"));
}

TEST(GgufModel, OfAnotherFamilyWithWhatIsNotComputedIsRefusedByName) {
  const auto with = [](const char* name, const char* key, auto value) {
    Changed other(name);
    other.set(key, value);
    return other.message();
  };
  EXPECT_EQ(with("gemma3", "gemma3.attention.sliding_window_pattern", 3U), "read");
  EXPECT_THAT(with("gemma3", "gemma3.attention.sliding_window", 0U), HasSubstr("expected an integer above 0"));
  EXPECT_THAT(with("gemma3", "gemma3.attention.scale", 1U), HasSubstr("gemma3.attention.scale: is not known"));
  EXPECT_THAT(with("olmo3", "olmo2.attention.sliding_window_pattern", "four"), HasSubstr("expected one integer"));
  EXPECT_THAT(with("qwen3moe", "qwen3moe.expert_count", 4U),
              HasSubstr("'blk.0.ffn_gate_exps.weight' has shape [3, 32, 32], expected [4, 32, 32]"));
  EXPECT_THAT(with("phi3", "phi3.rope.dimension_count", 3U), HasSubstr("expected an even number up to 8"));
  EXPECT_THAT(with("phi3", "phi3.rope.dimension_count", 8U),
              HasSubstr("rope_factors_short.weight: expected 4 numbers"));
  EXPECT_THAT(with("phi3", "phi3.rope.scaling.type", "yarn"), HasSubstr("expected \"none\" or \"longrope\""));
  EXPECT_THAT(with("granite", "granite.attention.temperature_scale", 1U), HasSubstr("is not known"));
  using Heads = std::vector<std::int32_t>;
  EXPECT_THAT(with("lfm2", "lfm2.attention.head_count_kv", Heads{0, 2}),
              HasSubstr("expected 0 or one same number for each of 3 layers"));
  EXPECT_THAT(with("lfm2", "lfm2.attention.head_count_kv", Heads{1, 2, 0}), HasSubstr("expected 0 or one same"));
  EXPECT_THAT(with("lfm2", "lfm2.attention.head_count_kv", Heads{0, 2, 2}),
              HasSubstr("'blk.2.attn_k.weight' is missing"));
}

TEST(GgufModel, OfQwen35WithWhatIsNotComputedIsRefusedByName) {
  const auto with = [](const char* key, auto value) {
    Changed other("qwen35");
    other.set(key, value);
    return other.message();
  };
  using List = std::vector<std::int32_t>;
  EXPECT_THAT(with("qwen35.full_attention_interval", 0U), HasSubstr("expected an integer above 0"));
  EXPECT_THAT(with("qwen35.full_attention_interval", 3U), HasSubstr("tensor 'blk.2.attn_q.weight' is missing"));
  EXPECT_THAT(with("qwen35.ssm.inner_size", 63U), HasSubstr("is not a multiple of ssm.time_step_rank"));
  EXPECT_THAT(with("qwen35.ssm.group_count", 3U), HasSubstr("expected a multiple of delta_key_heads, 3"));
  EXPECT_EQ(with("qwen35.rope.dimension_sections", List{1, 1, 0, 0}), "read");
  EXPECT_THAT(with("qwen35.rope.dimension_sections", List{2, 0, 0, 0}), HasSubstr("all of 2 pairs by turns"));
  EXPECT_THAT(with("qwen35.rope.dimension_sections", List{}), HasSubstr("expected three numbers"));
  EXPECT_THAT(with("qwen35.expert_count", 8U), HasSubstr("mixtures of experts are not computed"));
}

TEST(GgufModel, LeavesOutLayersThatPredictFurtherTokens) {
  Changed other("qwen35");
  EXPECT_EQ(other.message(), "read");
  other.set("qwen35.block_count", 6U);
  EXPECT_THAT(other.message(), HasSubstr("'blk.5.attn_q.weight' is missing"));
  other.set("qwen35.nextn_predict_layers", 1U);
  EXPECT_EQ(other.message(), "read");
  for (const char* name : {"blk.5.nextn.eh_proj.weight", "blk.5.attn_q.weight"}) {
    other.file.tensors.push_back(other.file.tensors[1]);
    other.file.tensors.back().name = name;
  }
  EXPECT_EQ(other.message(), "read");
  other.file.tensors.back().name = "blk.6.attn_q.weight";
  EXPECT_THAT(other.message(), HasSubstr("'blk.6.attn_q.weight' is not one of this model's"));
}

/// What add_model() cannot say of a recorded shape that `change` changes.
template <class Change>
std::vector<std::string> problems_with(const char* name, const Change& change) {
  ModelConfig config = recorded_config(name);
  change(config);
  GgufSettings settings;
  std::vector<std::string> problems;
  add_model(config, "x", settings, problems);
  return problems;
}

TEST(GgufModel, ThatLlamaCppWouldComputeOtherwiseIsNotWritten) {
  const auto rotated = [](ModelConfig& it) { it.layers.assign(4, {}); };
  EXPECT_THAT(problems_with("smollm3", rotated), ElementsAre(HasSubstr("no_rope_layers: layers differ in another")));
  EXPECT_THAT(problems_with("gemma3", [](ModelConfig& it) { it.attention_scale = 0.25; }),
              ElementsAre(HasSubstr("query_pre_attn_scalar: scores are multiplied by 0.250000, expected 0.353553")));
  const auto first_and_third = [](ModelConfig& it) {
    it.layers.assign(7, {});
    it.layers[0].windowed = it.layers[2].windowed = it.layers[3].windowed = true;
  };
  EXPECT_THAT(problems_with("gemma3", first_and_third), ElementsAre(HasSubstr("layer_types: layers differ")));
  EXPECT_THAT(problems_with("granite", [](ModelConfig& it) { it.residual_scale = 0; }),
              ElementsAre(HasSubstr("residual_scale is not above 0")));
  EXPECT_THAT(problems_with("qwen3moe", [](ModelConfig& it) { it.normalise_top_k = false; }),
              ElementsAre(HasSubstr("norm_topk_prob is false; llama.cpp computes the other in qwen3moe")));
  const auto dense = [](ModelConfig& it) { it.layers = {{.experts = true}, {.experts = false}}; };
  EXPECT_THAT(problems_with("qwen3moe", dense), ElementsAre(HasSubstr("mlp_only_layers: layers differ")));
  EXPECT_THAT(problems_with("qwen3moe", [](ModelConfig& it) { it.window = 32; }),
              ElementsAre(HasSubstr("sliding_window is 32; llama.cpp computes no windows in qwen3moe")));
  EXPECT_THAT(problems_with("olmo3", [](ModelConfig& it) { it.window_rope_theta = 7; }),
              ElementsAre(HasSubstr("layers with a window have another rope_theta")));
  EXPECT_THAT(problems_with("qwen3", [](ModelConfig& it) { it.rope_scaling.kind = "llama3"; }),
              ElementsAre(HasSubstr("rope_scaling: \"llama3\" is not computed by llama.cpp in qwen3")));
  EXPECT_THAT(problems_with("ministral3", [](ModelConfig& it) { it.rope_scaling.attention_factor = 1.1; }),
              ElementsAre(HasSubstr("expected YaRN with the usual attention_factor")));
  EXPECT_THAT(problems_with("olmo2", [](ModelConfig& it) { it.tied_head = true; }),
              ElementsAre(HasSubstr("tie_word_embeddings is true, which llama.cpp does not load in olmo2")));
  EXPECT_THAT(problems_with("phi3", [](ModelConfig& it) { it.num_heads = it.num_kv_heads = 8; }),
              ElementsAre(HasSubstr("num_attention_heads times head_dim is not hidden_size")));
  EXPECT_THAT(problems_with("olmoe", [](ModelConfig& it) { it.num_kv_heads = 2; }),
              ElementsAre(HasSubstr("num_key_value_heads is not num_attention_heads")));
  EXPECT_THAT(problems_with("qwen35", [](ModelConfig& it) { it.delta_value_dim = 16; }),
              ElementsAre(HasSubstr("linear_value_head_dim is not linear_key_head_dim")));
  EXPECT_THAT(problems_with("qwen35", [](ModelConfig& it) { it.layers[0].mixer = Mixer::Attention; }),
              ElementsAre(HasSubstr("layer_types: attention does not come in every so many layers")));
  EXPECT_THAT(problems_with("ministral3", [](ModelConfig& it) { it.window = 32; }),
              ElementsAre(HasSubstr("llama.cpp computes no windows in mistral3")));
}

TEST(GgufModel, WithoutAKeyThatIsNeededIsRefused) {
  Changed other("qwen3");
  other.file.values.erase("qwen3.embedding_length");
  EXPECT_THAT(other.message(), HasSubstr("qwen3.embedding_length: is missing"));
}

TEST(GgufModel, WithOtherRotaryFactorsThanLlama3sIsRefused) {
  Changed other("llama3");
  EXPECT_EQ(other.message(), "read");
  std::string damaged;
  for (GgufTensor& tensor : other.file.tensors) {
    if (tensor.name != "rope_freqs.weight") continue;
    damaged = std::string(tensor.bytes);
    const float factor = 1.5;
    damaged.replace(0, 4, reinterpret_cast<const char*>(&factor), 4);
    tensor.bytes = damaged;
  }
  EXPECT_THAT(other.message(), HasSubstr("rope_freqs.weight: is not Llama 3.1's scaling"));
}

TEST(GgufModel, WithOtherTensorsThanItsShapeHasIsRefused) {
  Changed missing("smollm"), surplus("smollm"), misshapen("smollm");
  missing.file.tensors.erase(missing.file.tensors.begin() + 3);
  EXPECT_THAT(missing.message(), HasSubstr("is missing"));
  surplus.file.tensors.push_back(surplus.file.tensors[1]);
  surplus.file.tensors.back().name = "blk.0.attn_q.bias";
  EXPECT_THAT(surplus.message(), HasSubstr("tensor 'blk.0.attn_q.bias' is not one of this model's"));
  for (GgufTensor& tensor : misshapen.file.tensors)
    if (tensor.name == "blk.1.ffn_down.weight") tensor.shape = {96, 64};
  EXPECT_THAT(misshapen.message(), HasSubstr("'blk.1.ffn_down.weight' has shape [96, 64], expected [64, 96]"));
}

}  // namespace
}  // namespace carnot
