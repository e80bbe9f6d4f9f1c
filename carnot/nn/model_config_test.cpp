#include "carnot/nn/model_config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "carnot/base/file.h"
#include "carnot/nn/safetensors_header.h"

namespace carnot {
namespace {

std::string golden(const std::string& file) {
  return *read_file(std::string(CARNOT_SOURCE_DIR) + "/tests/golden/transformers/" + file);
}

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
  EXPECT_EQ(qwen2->eos_token, 2);

  const auto qwen3 = parse_model_config(golden("qwen3/config.json"), "config.json");
  ASSERT_TRUE(qwen3.ok()) << qwen3.error().message;
  EXPECT_EQ(qwen3->head_dim, 16);
  EXPECT_EQ(qwen3->rope_theta, 1e6);
  EXPECT_FALSE(qwen3->tied_head);
  EXPECT_TRUE(qwen3->query_key_norm());
  EXPECT_FALSE(qwen3->attention_bias());
}

TEST(ModelConfig, CountsTheParametersOfTheRecordedCheckpoints) {
  for (const std::string family : {"qwen2", "qwen3"}) {
    const auto config = parse_model_config(golden(family + "/config.json"), "config.json");
    const auto header = parse_safetensors_header(golden(family + "/model.safetensors"), family);
    std::int64_t elements = 0;
    for (const TensorEntry& entry : header->entries) elements += static_cast<std::int64_t>((entry.end - entry.begin) / 4);
    EXPECT_EQ(config->num_parameters(), elements) << family;
  }
}

TEST(ModelConfig, RefusesByNameWhatIsNotComputedAllAtOnce) {
  const std::string all = complaint({{"use_sliding_window", true},
                                     {"hidden_act", "gelu"},
                                     {"rope_scaling", {{"rope_type", "yarn"}, {"factor", 4}}},
                                     {"quantization_config", {{"bits", 4}}},
                                     {"layer_types", {"full_attention", "sliding_attention"}}});
  for (const std::string key : {"use_sliding_window", "hidden_act", "rope_scaling", "quantization_config", "layer_types"})
    EXPECT_NE(all.find("config.json: " + key), std::string::npos) << key << "\n" << all;
  EXPECT_NE(complaint({{"model_type", "llama"}}).find("model_type is \"llama\", expected \"qwen2\" or \"qwen3\""),
            std::string::npos);
  EXPECT_NE(complaint({{"attention_bias", true}}, "qwen3").find("attention_bias"), std::string::npos);
  EXPECT_NE(complaint({{"num_experts", 8}}).find("num_experts"), std::string::npos);
}

TEST(ModelConfig, NamesMissingAndImpossibleSizes) {
  EXPECT_NE(complaint({{"vocab_size", nullptr}}).find("vocab_size is missing"), std::string::npos);
  EXPECT_NE(complaint({{"hidden_size", "wide"}}).find("hidden_size is \"wide\", expected an integer"), std::string::npos);
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
  EXPECT_EQ(config->eos_token, 5);
}

TEST(ModelConfig, ComesBackFromItsOwnJson) {
  for (const std::string family : {"qwen2", "qwen3"}) {
    const ModelConfig config{.family = family,
                             .vocab_size = 50,
                             .hidden_size = 24,
                             .num_layers = 3,
                             .num_heads = 6,
                             .num_kv_heads = 3,
                             .head_dim = 10,
                             .rope_theta = 1234.5,
                             .rms_norm_epsilon = 1e-5,
                             .tied_head = family == "qwen2",
                             .max_positions = 99,
                             .bos_token = 3,
                             .eos_token = 4};
    const std::string json = model_config_json(config, "float32");
    const auto read = parse_model_config(json, "config.json");
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(model_config_json(*read, "float32"), json);
    EXPECT_EQ(read->num_parameters(), config.num_parameters());
  }
}

}  // namespace
}  // namespace carnot
