#include "carnot/core/hf/model_config_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "carnot/core/base/file.h"
#include "carnot/core/hf/safetensors_header.h"
#include "carnot/core/nn/model_config.h"
#include "testing/paths.h"

namespace carnot {
namespace {

std::string golden(const std::string& file) { return *read_file(source_path("tests/golden/transformers/") + file); }

/// The golden Qwen2 config with some keys replaced.
std::string changed(const nlohmann::json& changes, const std::string& family = "qwen2") {
  auto config = nlohmann::json::parse(golden(family + "/config.json"));
  if (!changes.is_null()) config.update(changes);
  return config.dump();
}

std::string complaint(const nlohmann::json& changes, const std::string& family = "qwen2") {
  const auto config = parse_model_config(changed(changes, family), "config.json");
  return config ? "" : config.error().message;
}

TEST(ModelConfig, ReadsWhatTransformersWrote) {
  const auto qwen2 = parse_model_config(golden("qwen2/config.json"), "config.json");
  ASSERT_TRUE(qwen2.ok()) << qwen2.error().message;
  EXPECT_EQ(qwen2->family, "qwen2");
  EXPECT_EQ(qwen2->vocab_size, 97);
  EXPECT_EQ(qwen2->head_dim, 8);
  EXPECT_EQ(qwen2->num_kv_heads, 2);
  EXPECT_TRUE(qwen2->tied_head);
  EXPECT_EQ(qwen2->bos_token, 1);
  EXPECT_EQ(qwen2->eos_tokens, std::vector<int>{2});

  const auto qwen3 = parse_model_config(golden("qwen3/config.json"), "config.json");
  ASSERT_TRUE(qwen3.ok()) << qwen3.error().message;
  EXPECT_EQ(qwen3->head_dim, 16);
  EXPECT_EQ(qwen3->rope_theta, 1e6);
  EXPECT_FALSE(qwen3->tied_head);
  EXPECT_EQ(qwen3->query_key_norm(), QueryKeyNorm::Head);
  EXPECT_FALSE(qwen3->attention_bias());
}

TEST(ModelConfig, ReadsLlamaAndMistralWithTheirKeys) {
  const auto llama = parse_model_config(golden("llama3/config.json"), "config.json");
  ASSERT_TRUE(llama.ok()) << llama.error().message;
  EXPECT_EQ(llama->family, "llama");
  EXPECT_EQ(llama->rope_scaling.kind, "llama3");
  EXPECT_EQ(llama->rope_scaling.factor, 8);
  EXPECT_EQ(llama->eos_tokens, (std::vector<int>{2, 3, 4}));
  EXPECT_TRUE(llama->tied_head);
  EXPECT_FALSE(llama->attention_bias());
  EXPECT_EQ(llama->query_key_norm(), QueryKeyNorm::None);
  const auto mistral = parse_model_config(golden("mistral/config.json"), "config.json");
  ASSERT_TRUE(mistral.ok()) << mistral.error().message;
  EXPECT_EQ(mistral->head_dim, 12);
  EXPECT_EQ(mistral->num_kv_heads, 1);
}

TEST(ModelConfig, CountsTheParametersOfTheRecordedCheckpoints) {
  for (const std::string name :
       {"llama2", "mistral", "qwen2", "qwen3", "smollm3", "olmo2", "olmo3", "granite", "gemma3", "ministral3",
        "ministral3_window", "phi3", "phi3_window", "qwen3_moe", "olmoe", "lfm2", "qwen3_5", "qwen3_5_turns"}) {
    const auto config = parse_model_config(golden(name + "/config.json"), "config.json");
    const auto header = parse_safetensors_header(golden(name + "/model.safetensors"), name);
    std::int64_t elements = 0;
    for (const TensorEntry& entry : header->entries)
      elements += static_cast<std::int64_t>(entry.end - entry.begin) / element_size(entry.dtype);
    EXPECT_EQ(config->num_parameters(), elements) << name;
  }
}

TEST(ModelConfig, RefusesByNameWhatIsNotComputedAllAtOnce) {
  const std::string all = complaint({{"hidden_act", "gelu"},
                                     {"rope_scaling", {{"rope_type", "dynamic"}, {"factor", 4}}},
                                     {"mlp_bias", true},
                                     {"pretraining_tp", 2},
                                     {"quantization_config", {{"bits", 4}}},
                                     {"layer_types", {"full_attention", "chunked_attention"}}});
  for (const std::string key :
       {"hidden_act", "rope_scaling: rope_type", "mlp_bias", "pretraining_tp", "quantization_config", "layer_types"})
    EXPECT_NE(all.find("config.json: " + key), std::string::npos) << key << "\n" << all;
  EXPECT_NE(complaint({{"model_type", "gpt2"}}).find("model_type is \"gpt2\", expected \"llama\", \"mistral\", "),
            std::string::npos);
  EXPECT_NE(complaint({{"model_type", "mixtral"}}).find("mixtures of experts are not computed"), std::string::npos);
  EXPECT_NE(complaint({{"attention_bias", true}}, "qwen3").find("attention_bias"), std::string::npos);
  EXPECT_NE(complaint({{"num_experts", 8}}).find("num_experts"), std::string::npos);
}

TEST(ModelConfig, RefusesSizesThatNoMachineHolds) {
  EXPECT_NE(complaint({{"hidden_size", std::int64_t{1} << 31}}).find("hidden_size is 2147483648"), std::string::npos);
  EXPECT_NE(
      complaint({{"hidden_size", 2147483647}}).find("hidden_size is 2147483647, expected a number from 1 to 16777216"),
      std::string::npos);
  EXPECT_NE(complaint({{"num_hidden_layers", 1'000'000'000}})
                .find("num_layers is 1000000000, expected a number from 1 to 16384"),
            std::string::npos);
  EXPECT_NE(complaint({{"hidden_size", 1 << 20}, {"intermediate_size", 1 << 20}}).find("weights, the most that is"),
            std::string::npos);
  EXPECT_NE(complaint({{"num_attention_heads", 1 << 20}, {"num_key_value_heads", 1}, {"head_dim", 1 << 10}})
                .find("num_heads times head_dim is more than"),
            std::string::npos);
}

/// The golden config with some keys replaced.
ModelConfig read(const nlohmann::json& changes, const std::string& family) {
  const auto config = parse_model_config(changed(changes, family), "config.json");
  EXPECT_TRUE(config.ok()) << config.error().message;
  return config.ok() ? *config : ModelConfig{};
}

std::string windowed_layers(const ModelConfig& config) {
  std::string layers;
  for (int layer = 0; layer < config.num_layers; ++layer) layers += config.layer_kind(layer).windowed ? 'w' : 'f';
  return layers;
}

TEST(ModelConfig, AWindowThatNeverClosesIsNone) {
  const auto window = [](const nlohmann::json& value) {
    return read({{"max_position_embeddings", 64}, {"sliding_window", value}}, "mistral").window;
  };
  EXPECT_EQ(window(nullptr), 0);
  EXPECT_EQ(window(64), 0);
  EXPECT_EQ(window(63), 63);
  auto absent = nlohmann::json::parse(golden("mistral/config.json"));
  absent.erase("sliding_window");
  EXPECT_EQ(parse_model_config(absent.dump(), "config.json")->window, 4096);
}

TEST(ModelConfig, ReadsWhichLayersSeeAWindow) {
  EXPECT_EQ(windowed_layers(read({}, "mistral_window")), "ww");
  EXPECT_EQ(windowed_layers(read({}, "gemma3")), "wfw");
  const nlohmann::json six = {{"num_hidden_layers", 7}, {"layer_types", nullptr}};
  EXPECT_EQ(windowed_layers(read(six, "gemma3")), "wwwwwfw");
  EXPECT_EQ(windowed_layers(read(six, "olmo3")), "wwwfwww");
  EXPECT_EQ(windowed_layers(
                read({{"num_hidden_layers", 4}, {"layer_types", nullptr}, {"sliding_window_pattern", 2}}, "gemma3")),
            "wfwf");
  EXPECT_EQ(windowed_layers(read({{"sliding_window", 32}}, "qwen2")), "ff") << "Qwen2 looks at use_sliding_window";
  const nlohmann::json qwen = {{"use_sliding_window", true}, {"sliding_window", 32}, {"layer_types", nullptr}};
  EXPECT_EQ(windowed_layers(read(qwen, "qwen2")), "ff") << "max_window_layers is 28";
  nlohmann::json from_one = qwen;
  from_one["max_window_layers"] = 1;
  EXPECT_EQ(windowed_layers(read(from_one, "qwen2")), "fw");
  EXPECT_EQ(read(from_one, "qwen2").window, 32);
  EXPECT_NE(complaint({{"layer_types", {"sliding_attention", "full_attention"}}}, "llama3").find("layer_types"),
            std::string::npos);
  EXPECT_NE(complaint({{"layer_types", {"full_attention"}}}, "gemma3").find("for each of 3 layers"), std::string::npos);
}

TEST(ModelConfig, ReadsKeysThatOnlySomeFamiliesHave) {
  const ModelConfig smollm3 = read({}, "smollm3");
  EXPECT_TRUE(smollm3.layer_kind(0).rotated);
  EXPECT_FALSE(smollm3.layer_kind(1).rotated);
  const ModelConfig fourth = read({{"num_hidden_layers", 8}, {"no_rope_layers", nullptr}}, "smollm3");
  for (int layer = 0; layer < 8; ++layer) EXPECT_EQ(fourth.layer_kind(layer).rotated, layer % 4 != 3) << layer;
  const ModelConfig granite = read({}, "granite");
  EXPECT_EQ(granite.attention_scale, 0.2);
  EXPECT_EQ(granite.embedding_scale, 3);
  EXPECT_EQ(granite.residual_scale, 0.7);
  EXPECT_EQ(granite.logits_divisor, 1.5);
  const ModelConfig gemma = read({}, "gemma3");
  EXPECT_DOUBLE_EQ(gemma.attention_scale, 1 / std::sqrt(24.0));
  EXPECT_EQ(gemma.rope_theta, 1e6);
  EXPECT_EQ(gemma.rope_scaling.kind, "linear");
  EXPECT_EQ(gemma.window_rope_theta, 1e4);
  const ModelConfig published = read({{"rope_parameters", nullptr}, {"rope_local_base_freq", 5e3}}, "gemma3");
  EXPECT_EQ(published.rope_theta, 1e6);
  EXPECT_EQ(published.window_rope_theta, 5e3);
  EXPECT_EQ(read({}, "olmo3").rope_scaling.kind, "yarn");
  const std::string all = complaint({{"hidden_activation", "gelu"},
                                     {"final_logit_softcapping", 30},
                                     {"attn_logit_softcapping", 50},
                                     {"use_bidirectional_attention", true},
                                     {"sliding_window", nullptr}},
                                    "gemma3");
  for (const std::string key : {"hidden_activation", "final_logit_softcapping", "attn_logit_softcapping",
                                "use_bidirectional_attention", "sliding_window"})
    EXPECT_NE(all.find("config.json: " + key), std::string::npos) << key << "\n" << all;
}

TEST(ModelConfig, TakesTheFamilysDefaultWhereAKeyIsAbsent) {
  const std::string shape = R"("vocab_size": 8, "hidden_size": 64, "intermediate_size": 8, "num_hidden_layers": 1)";
  const auto llama =
      parse_model_config(R"({"model_type": "llama", "num_attention_heads": 4, )" + shape + "}", "config.json");
  ASSERT_TRUE(llama.ok()) << llama.error().message;
  EXPECT_EQ(llama->num_kv_heads, 4);
  EXPECT_EQ(llama->head_dim, 16);
  EXPECT_EQ(llama->max_positions, 2048);
  EXPECT_EQ(llama->bos_token, 1);
  EXPECT_EQ(llama->eos_tokens, std::vector<int>{2});
  EXPECT_FALSE(llama->tied_head);
  const auto qwen3 =
      parse_model_config(R"({"model_type": "qwen3", "num_attention_heads": 32, )" + shape + "}", "config.json");
  ASSERT_TRUE(qwen3.ok()) << qwen3.error().message;
  EXPECT_EQ(qwen3->num_kv_heads, 32);
  EXPECT_EQ(qwen3->head_dim, 128);
  EXPECT_EQ(qwen3->bos_token, -1);
  EXPECT_TRUE(qwen3->eos_tokens.empty());
}

TEST(ModelConfig, ReadsHowPositionsAreScaled) {
  const auto scaling = [](const nlohmann::json& value, const char* key = "rope_scaling") {
    const auto config = parse_model_config(changed({{key, value}}), "config.json");
    return config ? config->rope_scaling : RotaryScaling{.kind = config.error().message};
  };
  EXPECT_EQ(scaling({{"type", "linear"}, {"factor", 2.5}}).factor, 2.5);
  const RotaryScaling llama3 = scaling({{"rope_type", "llama3"},
                                        {"factor", 8.0},
                                        {"low_freq_factor", 1.0},
                                        {"high_freq_factor", 4.0},
                                        {"original_max_position_embeddings", 8192}},
                                       "rope_parameters");
  EXPECT_EQ(llama3.kind, "llama3");
  EXPECT_EQ(llama3.original_max_positions, 8192);
  const RotaryScaling yarn = scaling({{"type", "yarn"}, {"factor", 4.0}});
  EXPECT_EQ(yarn.original_max_positions, 8192) << "max_position_embeddings";
  EXPECT_DOUBLE_EQ(yarn.attention_factor, 0.1 * std::log(4.0) + 1);
  EXPECT_EQ(scaling({{"rope_type", "default"}}).kind, "default");

  for (const nlohmann::json& wrong : {nlohmann::json{{"rope_type", "llama3"}, {"factor", 8.0}},
                                      {{"rope_type", "linear"}},
                                      {{"factor", 2.0}},
                                      {{"rope_type", "longrope"}, {"factor", 2.0}},
                                      {{"rope_type", "linear"}, {"factor", 0.5}}})
    EXPECT_NE(complaint({{"rope_scaling", wrong}}).find("rope_scaling"), std::string::npos) << wrong;
}

TEST(ModelConfig, NamesMissingAndImpossibleSizes) {
  EXPECT_NE(complaint({{"vocab_size", nullptr}}).find("vocab_size is missing"), std::string::npos);
  EXPECT_NE(complaint({{"hidden_size", "wide"}}).find("hidden_size is \"wide\", expected an integer"),
            std::string::npos);
  EXPECT_NE(complaint({{"num_key_value_heads", 3}}).find("expected a multiple of num_kv_heads, 3"), std::string::npos);
  EXPECT_NE(complaint({{"num_hidden_layers", 0}}).find("num_layers is 0"), std::string::npos);
  EXPECT_NE(complaint({{"head_dim", 7}}).find("head_dim is 7, expected an even number"), std::string::npos);
  EXPECT_FALSE(parse_model_config("[]", "config.json").ok());
  EXPECT_FALSE(parse_model_config("{\"model_type\"", "config.json").ok());
}

TEST(ModelConfig, AcceptsTheNewerSpellingOfRotaryParametersAndListsOfEndTokens) {
  const auto config = parse_model_config(changed({{"rope_theta", nullptr},
                                                  {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 5e5}}},
                                                  {"eos_token_id", {5, 6}}}),
                                         "config.json");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->rope_theta, 5e5);
  EXPECT_EQ(config->eos_tokens, (std::vector<int>{5, 6}));
}

/// What the family's config.json can say of them.
void add_layers_and_scales(ModelConfig& config) {
  const ModelFamily& family = *find_model_family(config.family);
  if (family.windows) config.window = 7;
  if (family.attention_every > 0) config.layers = {{.mixer = family.other_mixer}, {}, {}};
  if (family.unrotated_every > 0) config.layers = {{.rotated = false}, {.rotated = true}, {.rotated = false}};
  if (family.full_every > 0) {
    config.layers = {{.windowed = true}, {.windowed = false}, {.windowed = true}};
    config.window_rope_theta = 123;
  }
  if (family.partial_rotary) config.rotary_share = 0.4;
  if (config.family == "ministral3") {
    config.rope_scaling.query_growth = 0.2;
    config.rope_scaling.original_max_positions = 16;
  }
  if (family.experts) {
    config.num_experts = 5;
    config.experts_per_token = 3;
    config.expert_size = 13;
    config.normalise_top_k = config.family == "olmoe";
  }
  if (config.family == "qwen3_moe")
    config.layers = {{.windowed = true, .experts = true}, {.windowed = true}, {.windowed = true, .experts = true}};
  if (config.family == "gemma3_text") config.attention_scale = 1 / std::sqrt(168.0);
  if (config.family != "granite") return;
  config.attention_scale = 0.25;
  config.embedding_scale = 12;
  config.residual_scale = 0.22;
  config.logits_divisor = 8;
}

TEST(ModelConfig, OfRandomWeightsWithoutAWindowComesBackFromItsOwnJson) {
  for (const std::string& family : model_family_names()) {
    ModelConfig config{.family = family, .vocab_size = 50, .num_layers = 12};
    if (find_model_family(family)->experts) config.num_experts = config.experts_per_token = 2;
    const auto read = parse_model_config(model_config_json(config, "float32"), "config.json");
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(read->window, 0) << family;
    for (int layer = 0; layer < config.num_layers; ++layer)
      EXPECT_EQ(read->layer_kind(layer), config.layer_kind(layer)) << family << ", layer " << layer;
  }
}

TEST(ModelConfig, ComesBackFromItsOwnJson) {
  const RotaryScaling scalings[] = {{},
                                    {.kind = "linear", .factor = 2},
                                    {.kind = "llama3",
                                     .factor = 8,
                                     .original_max_positions = 32,
                                     .low_frequency_factor = 1.5,
                                     .high_frequency_factor = 3},
                                    {.kind = "yarn",
                                     .factor = 4,
                                     .original_max_positions = 16,
                                     .attention_factor = 1.25,
                                     .beta_fast = 20,
                                     .beta_slow = 2,
                                     .truncate = false},
                                    {.kind = "longrope",
                                     .original_max_positions = 99,
                                     .attention_factor = 1.25,
                                     .short_factors = {1, 1.5},
                                     .long_factors = {2, 30},
                                     .long_max_positions = 400}};
  for (const std::string& family : model_family_names()) {
    for (const RotaryScaling& scaling : scalings) {
      const bool longrope = find_model_family(family)->longrope;
      if (scaling.kind != "default" && (scaling.kind == "longrope") != longrope) continue;
      ModelConfig config{.family = family,
                         .vocab_size = 50,
                         .hidden_size = 24,
                         .num_layers = 3,
                         .num_heads = 6,
                         .num_kv_heads = 3,
                         .head_dim = 10,
                         .rope_theta = 1234.5,
                         .rope_scaling = scaling,
                         .rms_norm_epsilon = 1e-5,
                         .tied_head = family == "qwen2",
                         .max_positions = 99,
                         .bos_token = 3,
                         .pad_token = 5,
                         .eos_tokens = {4, 7}};
      add_layers_and_scales(config);
      const std::string json = model_config_json(config, "float32");
      const auto read = parse_model_config(json, "config.json");
      ASSERT_TRUE(read.ok()) << read.error().message;
      EXPECT_EQ(model_config_json(*read, "float32"), json);
      EXPECT_EQ(read->num_parameters(), config.num_parameters());
    }
  }
}

}  // namespace
}  // namespace carnot
