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
  config.update(changes);
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
  EXPECT_TRUE(qwen3->query_key_norm());
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
  EXPECT_FALSE(llama->attention_bias() || llama->query_key_norm());
  const auto mistral = parse_model_config(golden("mistral/config.json"), "config.json");
  ASSERT_TRUE(mistral.ok()) << mistral.error().message;
  EXPECT_EQ(mistral->head_dim, 12);
  EXPECT_EQ(mistral->num_kv_heads, 1);
}

TEST(ModelConfig, CountsTheParametersOfTheRecordedCheckpoints) {
  for (const std::string name : {"llama2", "mistral", "qwen2", "qwen3"}) {
    const auto config = parse_model_config(golden(name + "/config.json"), "config.json");
    const auto header = parse_safetensors_header(golden(name + "/model.safetensors"), name);
    std::int64_t elements = 0;
    for (const TensorEntry& entry : header->entries)
      elements += static_cast<std::int64_t>(entry.end - entry.begin) / element_size(entry.dtype);
    EXPECT_EQ(config->num_parameters(), elements) << name;
  }
}

TEST(ModelConfig, RefusesByNameWhatIsNotComputedAllAtOnce) {
  const std::string all = complaint({{"use_sliding_window", true},
                                     {"hidden_act", "gelu"},
                                     {"rope_scaling", {{"rope_type", "dynamic"}, {"factor", 4}}},
                                     {"mlp_bias", true},
                                     {"pretraining_tp", 2},
                                     {"quantization_config", {{"bits", 4}}},
                                     {"layer_types", {"full_attention", "sliding_attention"}}});
  for (const std::string key : {"use_sliding_window", "hidden_act", "rope_scaling: rope_type", "mlp_bias",
                                "pretraining_tp", "quantization_config", "layer_types"})
    EXPECT_NE(all.find("config.json: " + key), std::string::npos) << key << "\n" << all;
  EXPECT_NE(complaint({{"model_type", "gpt2"}})
                .find("model_type is \"gpt2\", expected \"llama\", \"mistral\", \"qwen2\" or \"qwen3\""),
            std::string::npos);
  EXPECT_NE(complaint({{"model_type", "qwen3_moe"}}).find("mixtures of experts are not computed"), std::string::npos);
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

TEST(ModelConfig, AWindowThatNeverClosesIsAcceptedAndAShorterOneRefused) {
  const auto mistral = [](const nlohmann::json& window) {
    return complaint({{"max_position_embeddings", 64}, {"sliding_window", window}}, "mistral");
  };
  EXPECT_EQ(mistral(nullptr), "");
  EXPECT_EQ(mistral(64), "");
  EXPECT_NE(mistral(63).find("sliding_window is 63, expected null or at least max_position_embeddings, 64"),
            std::string::npos);
  auto absent = nlohmann::json::parse(golden("mistral/config.json"));
  absent.erase("sliding_window");
  const auto config = parse_model_config(absent.dump(), "config.json");
  EXPECT_NE(config.error().message.find("sliding_window is missing"), std::string::npos) << "then it is 4096";
  EXPECT_EQ(complaint({{"sliding_window", 32}}), "") << "Qwen2 looks at use_sliding_window";
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
                                     .truncate = false}};
  for (const std::string& family : model_family_names()) {
    for (const RotaryScaling& scaling : scalings) {
      const ModelConfig config{.family = family,
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
