// Keys of config.json that describe mixtures of experts.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "carnot/core/base/file.h"
#include "carnot/core/hf/model_config_file.h"
#include "carnot/core/nn/model_config.h"
#include "testing/paths.h"

namespace carnot {
namespace {

/// The recorded config with some keys replaced.
Result<ModelConfig> parsed_with(const nlohmann::json& changes, const std::string& recorded) {
  auto config =
      nlohmann::json::parse(*read_file(source_path("tests/golden/transformers/") + recorded + "/config.json"));
  if (!changes.is_null()) config.update(changes);
  return parse_model_config(config.dump(), "config.json");
}

ModelConfig config_of(const nlohmann::json& changes, const std::string& recorded) {
  const auto config = parsed_with(changes, recorded);
  EXPECT_TRUE(config.ok()) << config.error().message;
  return config.ok() ? *config : ModelConfig{};
}

std::string expert_complaint(const nlohmann::json& changes, const std::string& recorded) {
  const auto config = parsed_with(changes, recorded);
  return config ? "" : config.error().message;
}

std::string layers_with_windows(const ModelConfig& config) {
  std::string layers;
  for (int layer = 0; layer < config.num_layers; ++layer) layers += config.layer_kind(layer).windowed ? 'w' : 'f';
  return layers;
}

std::string expert_layers(const ModelConfig& config) {
  std::string layers;
  for (int layer = 0; layer < config.num_layers; ++layer) layers += config.layer_kind(layer).experts ? 'e' : 'd';
  return layers;
}

TEST(ExpertConfig, ReadsWhichLayersHaveExpertsAndHowMany) {
  const ModelConfig qwen3 = config_of({}, "qwen3_moe"), turns = config_of({}, "qwen3_moe_window"),
                    olmoe = config_of({}, "olmoe");
  EXPECT_EQ(expert_layers(qwen3), "ede");
  EXPECT_EQ(qwen3.num_experts, 5) << "num_local_experts";
  EXPECT_EQ(qwen3.experts_per_token, 2);
  EXPECT_EQ(qwen3.expert_width(), 24);
  EXPECT_TRUE(qwen3.normalise_top_k);
  EXPECT_EQ(qwen3.window, 0);
  EXPECT_EQ(expert_layers(turns), "de");
  EXPECT_EQ(layers_with_windows(turns), "ww");
  EXPECT_FALSE(turns.normalise_top_k);
  EXPECT_EQ(expert_layers(olmoe), "ee");
  EXPECT_EQ(olmoe.experts_per_token, 3);
  EXPECT_EQ(olmoe.expert_width(), 24) << "intermediate_size";
  EXPECT_EQ(config_of({{"num_local_experts", nullptr}, {"num_experts", 9}}, "qwen3_moe").num_experts, 9)
      << "as published";
  const ModelConfig defaults = config_of({{"num_local_experts", nullptr},
                                          {"num_experts_per_tok", nullptr},
                                          {"moe_intermediate_size", nullptr},
                                          {"norm_topk_prob", nullptr},
                                          {"mlp_only_layers", nullptr}},
                                         "qwen3_moe");
  EXPECT_EQ(expert_layers(defaults), "eee");
  EXPECT_EQ(defaults.num_experts, 128);
  EXPECT_EQ(defaults.experts_per_token, 8);
  EXPECT_EQ(defaults.expert_width(), 768);
  EXPECT_FALSE(defaults.normalise_top_k);
}

TEST(ExpertConfig, RefusesByNameWhatIsNotComputedOfExpertsAllAtOnce) {
  const auto expect_named = [](const std::string& all, const std::vector<std::string>& keys) {
    for (const std::string& key : keys)
      EXPECT_NE(all.find("config.json: " + key), std::string::npos) << key << "\n" << all;
  };
  expect_named(
      expert_complaint({{"clip_qkv", 8.0},
                        {"attention_bias", true},
                        {"n_routed_experts", 4},
                        {"num_experts_per_tok", "two"},
                        {"use_sliding_window", true},
                        {"hidden_act", "gelu"}},
                       "olmoe"),
      {"clip_qkv", "attention_bias", "n_routed_experts", "num_experts_per_tok", "use_sliding_window", "hidden_act"});
  expect_named(expert_complaint({{"attention_bias", true},
                                 {"norm_topk_prob", 1},
                                 {"moe_intermediate_size", -1},
                                 {"mlp_only_layers", {0, -1}},
                                 {"quantization_config", {{"bits", 4}}}},
                                "qwen3_moe"),
               {"attention_bias", "norm_topk_prob", "moe_intermediate_size", "mlp_only_layers", "quantization_config"});
  expect_named(expert_complaint({{"decoder_sparse_step", 0}}, "qwen3_moe"), {"decoder_sparse_step"});
  EXPECT_NE(expert_complaint({{"num_experts_per_tok", 6}}, "qwen3_moe")
                .find("experts_per_token is 6, expected a number from"),
            std::string::npos);
  EXPECT_NE(
      expert_complaint({{"num_experts", 0}, {"num_local_experts", 0}}, "olmoe").find("num_experts is 0, expected"),
      std::string::npos);
}

}  // namespace
}  // namespace carnot
