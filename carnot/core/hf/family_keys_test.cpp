#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "carnot/core/base/file.h"
#include "carnot/core/hf/model_config_file.h"
#include "testing/paths.h"

namespace carnot {
namespace {

/// A recorded config with some keys replaced.
Result<ModelConfig> with_keys(const std::string& checkpoint, const nlohmann::json& keys) {
  const std::string path = source_path("tests/golden/transformers/" + checkpoint + "/config.json");
  auto config = nlohmann::json::parse(*read_file(path));
  if (!keys.is_null()) config.update(keys);
  return parse_model_config(config.dump(), "config.json");
}

std::string problems_with(const std::string& checkpoint, const nlohmann::json& keys) {
  const auto config = with_keys(checkpoint, keys);
  return config ? "" : config.error().message;
}

ModelConfig config_with(const std::string& checkpoint, const nlohmann::json& keys = {}) {
  const auto config = with_keys(checkpoint, keys);
  EXPECT_TRUE(config.ok()) << config.error().message;
  return config.ok() ? *config : ModelConfig{};
}

TEST(Ministral3Keys, SayHowQueriesGrow) {
  const ModelConfig config = config_with("ministral3");
  EXPECT_EQ(config.rope_theta, 1e6);
  EXPECT_EQ(config.rope_scaling.kind, "yarn");
  EXPECT_EQ(config.rope_scaling.original_max_positions, 8);
  EXPECT_EQ(config.rope_scaling.query_growth, 0.3);
  EXPECT_DOUBLE_EQ(config.rope_scaling.attention_factor, (0.08 * std::log(4.0) + 1) / (0.05 * std::log(4.0) + 1));
  EXPECT_EQ(config.window, 0);
  EXPECT_EQ(config_with("ministral3_window").window, 40);
  const ModelConfig usual = config_with("ministral3", {{"rope_parameters", nullptr}});
  EXPECT_EQ(usual.rope_scaling.factor, 16);
  EXPECT_EQ(usual.rope_scaling.original_max_positions, 16384);
  EXPECT_EQ(usual.rope_scaling.query_growth, 0.1);
}

TEST(Ministral3Keys, AreRefusedWhereTheGrowthIsUnknown) {
  const auto problems = [](const nlohmann::json& rotary) {
    return problems_with("ministral3", {{"rope_parameters", rotary}});
  };
  EXPECT_NE(problems({{"rope_type", "default"}}).find("llama_4_scaling_beta is missing, expected a number"),
            std::string::npos);
  EXPECT_NE(problems({{"rope_type", "default"}, {"llama_4_scaling_beta", 0.1}})
                .find("original_max_position_embeddings is missing"),
            std::string::npos);
  EXPECT_NE(
      problems({{"rope_type", "default"}, {"llama_4_scaling_beta", -0.1}, {"original_max_position_embeddings", 8}})
          .find("growth of queries"),
      std::string::npos);
}

TEST(Phi3Keys, GiveTheShortFactorsAndThePositionsTheyAreFor) {
  const ModelConfig config = config_with("phi3");
  EXPECT_EQ(config.rotary_share, 0.75);
  EXPECT_EQ(config.rotary_dim(), 6);
  EXPECT_EQ(config.rope_scaling.kind, "longrope");
  EXPECT_EQ(config.rope_scaling.short_factors, (std::vector<double>{1, 1.2, 2.5}));
  EXPECT_EQ(config.rope_scaling.long_factors, (std::vector<double>{1.1, 7, 40}));
  EXPECT_DOUBLE_EQ(config.rope_scaling.attention_factor, std::sqrt(1 + std::log(2) / std::log(4096)));
  EXPECT_EQ(config.max_positions, 4096) << "not 8192";
  EXPECT_TRUE(config.rope_scaling.changes_beyond_max_positions());
  const auto json = nlohmann::json::parse(model_config_json(config, "float32"));
  EXPECT_EQ(json["max_position_embeddings"], 8192);
  EXPECT_EQ(json["rope_scaling"].size(), 3u) << "transformers 4 takes no others";
}

TEST(Phi3Keys, WithEqualFactorsEndNowhere) {
  const ModelConfig config = config_with("phi3_long");
  EXPECT_EQ(config.max_positions, 8192);
  EXPECT_FALSE(config.rope_scaling.changes_beyond_max_positions());
  EXPECT_EQ(config.rope_scaling.attention_factor, 1.25);
  EXPECT_EQ(config.rotary_share, 1);
}

TEST(Phi3Keys, AreReadAsPublishedFilesSpellThem) {
  const nlohmann::json factors = {{"type", "su"}, {"short_factor", {1, 2, 3}}, {"long_factor", {4, 5, 6}}};
  const nlohmann::json published = {{"rope_parameters", nullptr}, {"rope_scaling", factors},
                                    {"rope_theta", 5e3},          {"partial_rotary_factor", 0.75},
                                    {"sliding_window", 262144},   {"original_max_position_embeddings", 2048}};
  const ModelConfig config = config_with("phi3", published);
  EXPECT_EQ(config.rope_theta, 5e3);
  EXPECT_EQ(config.rotary_dim(), 6);
  EXPECT_EQ(config.rope_scaling.long_factors, (std::vector<double>{4, 5, 6}));
  EXPECT_EQ(config.max_positions, 2048);
  EXPECT_EQ(config.window, 0);
  const ModelConfig windowed = config_with("phi3_window");
  EXPECT_EQ(windowed.window, 40);
  EXPECT_EQ(windowed.rope_scaling.kind, "default");
  EXPECT_EQ(windowed.max_positions, 8192);
}

TEST(Phi3Keys, ThatAreNotComputedAreRefusedAllAtOnce) {
  const nlohmann::json rotary = {
      {"rope_type", "longrope"}, {"short_factor", {1, "two"}}, {"original_max_position_embeddings", 5}};
  const std::string all = problems_with("phi3", {{"resid_pdrop", 0.1},
                                                 {"embd_pdrop", 0.1},
                                                 {"attention_dropout", 0.1},
                                                 {"lm_head_bias", true},
                                                 {"rope_parameters", rotary},
                                                 {"layer_types", {"sliding_attention", "full_attention"}}});
  for (const std::string key : {"resid_pdrop", "embd_pdrop", "attention_dropout", "lm_head_bias", "layer_types",
                                "rotary scaling: short_factor", "rotary scaling: long_factor is missing",
                                "rotary scaling: original_max_position_embeddings is 5, expected 4096"})
    EXPECT_NE(all.find("config.json: " + key), std::string::npos) << key << "\n" << all;
  const std::string yarn = problems_with("phi3", {{"rope_parameters", {{"rope_type", "linear"}, {"factor", 2}}}});
  EXPECT_NE(yarn.find("rope_type is \"linear\", expected \"default\" or \"longrope\""), std::string::npos) << yarn;
}

TEST(Phi3Keys, OfTheWrongShapeAreRefused) {
  const auto problems = [](const std::string& key, const nlohmann::json& value) {
    nlohmann::json rotary = {{"rope_type", "longrope"},
                             {"partial_rotary_factor", 0.75},
                             {"short_factor", {1, 2, 3}},
                             {"long_factor", {1, 2, 3}}};
    rotary[key] = value;
    return problems_with("phi3", {{"rope_parameters", rotary}});
  };
  EXPECT_EQ(problems("rope_theta", 1e4), "");
  EXPECT_NE(problems("short_factor", {1, 2}).find("short_factor of rope_scaling is not 3 numbers above 0"),
            std::string::npos);
  EXPECT_NE(problems("long_factor", {1, 2, 0}).find("long_factor of rope_scaling is not 3 numbers above 0"),
            std::string::npos);
  EXPECT_NE(problems("attention_factor", 0).find("attention_factor"), std::string::npos);
  for (const double share : {0.0, -1.0, 1.5, 1e300, 0.4})
    EXPECT_NE(problems("partial_rotary_factor", share).find("partial_rotary_factor times head_dim is"),
              std::string::npos)
        << share;
  EXPECT_NE(problems_with("phi3", {{"original_max_position_embeddings", 1}}).find("an integer above 1"),
            std::string::npos);
  EXPECT_NE(problems_with("qwen2", {{"rope_parameters", {{"partial_rotary_factor", 0.5}}}})
                .find("partial_rotary_factor is 0.5, expected 1.0"),
            std::string::npos);
}

}  // namespace
}  // namespace carnot
