#include "carnot/core/hf/weights.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

#include "carnot/core/base/file.h"
#include "carnot/core/base/log.h"
#include "carnot/core/hf/model_config_file.h"
#include "carnot/core/hf/safetensors.h"
#include "testing/packed_batch.h"
#include "testing/paths.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

const std::string kGoldenModels = source_path("tests/golden/transformers/");

// In float32, float16 and bfloat16; llama3 in three shards.
TEST(Weights, OfTransformersCheckpointsLoadIntoTheModel) {
  for (const std::string name : {"llama2", "llama3", "mistral", "qwen2", "qwen3", "qwen3_moe", "olmoe"}) {
    const auto model = load_model(kGoldenModels + name, at::TensorOptions(at::kDouble));
    ASSERT_TRUE(model.ok()) << model.error().message;
    const auto file = read_model_tensors(kGoldenModels + name);
    EXPECT_EQ(model->parameters().size(), file->tensors.size());
    std::map<std::string, at::Tensor> given;
    for (const NamedTensor& named : file->tensors) given[named.name] = named.tensor;
    for (const NamedTensor& named : model->parameters()) {
      EXPECT_EQ(named.tensor.scalar_type(), at::kDouble);
      EXPECT_TRUE(at::equal(named.tensor, given.at(named.name).to(at::kDouble))) << named.name;
    }
  }
}

TEST(Weights, FileTensorsAreThoseOfTheFile) {
  for (const std::string name : {"qwen2", "ministral3", "phi3", "phi3_window"}) {
    const auto file = read_model_tensors(kGoldenModels + name);
    const at::ScalarType stored = file->tensors.front().tensor.scalar_type();
    const auto model = load_model(kGoldenModels + name, at::TensorOptions(stored));
    ASSERT_TRUE(model.ok()) << model.error().message;
    std::map<std::string, at::Tensor> written;
    for (const NamedTensor& named : file_tensors(stored_weights(*model))) written[named.name] = named.tensor;
    EXPECT_EQ(written.size(), file->tensors.size()) << name;
    for (const NamedTensor& named : file->tensors)
      EXPECT_TRUE(at::equal(written[named.name], named.tensor)) << name << ": " << named.name;
  }
}

TEST(Weights, FusedOnesAreNamedAsInTheFileWhereTheyAreWrong) {
  const auto model = load_model(kGoldenModels + "phi3", at::TensorOptions(at::kFloat));
  ASSERT_TRUE(model.ok()) << model.error().message;
  std::vector<NamedTensor> tensors = read_model_tensors(kGoldenModels + "phi3")->tensors;
  for (NamedTensor& named : tensors) {
    if (named.name == "model.layers.0.self_attn.qkv_proj.weight") named.name = "model.layers.0.self_attn.q_proj.weight";
    if (named.name == "model.layers.1.mlp.gate_up_proj.weight") named.tensor = at::zeros({96, 31});
  }
  const Status loaded = load_weights(*model, tensors, "here");
  ASSERT_FALSE(loaded.ok());
  for (const char* part : {"here: weight 'model.layers.0.self_attn.qkv_proj.weight' is missing",
                           "here: weight 'model.layers.0.self_attn.q_proj.weight' is not one of this model's",
                           "'model.layers.1.mlp.gate_up_proj.weight' has shape [96, 31], expected [96, 32]"})
    EXPECT_NE(loaded.error().message.find(part), std::string::npos) << loaded.error().message;
}

class SavedWeightsOf : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Families, SavedWeightsOf, ::testing::ValuesIn(model_family_names()));

TEST_P(SavedWeightsOf, AreTheSameBitsWhenLoadedAgain) {
  const fs::path folder = fs::temp_directory_path() / ("carnot_weights_test_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  ModelConfig config{.family = GetParam(),
                     .vocab_size = 13,
                     .hidden_size = 8,
                     .intermediate_size = 12,
                     .num_layers = 2,
                     .num_heads = 2,
                     .num_kv_heads = 1,
                     .head_dim = 4,
                     .window = find_model_family(GetParam())->windows ? 3 : 0};
  testing::add_experts(config);
  const Model model(config, 3, at::TensorOptions(at::kFloat));
  ASSERT_TRUE(write_safetensors(folder / "model.safetensors", file_tensors(stored_weights(model))).ok());
  ASSERT_TRUE(write_file_atomically(folder / "config.json", model_config_json(config, "float32")).ok());
  const auto loaded = load_model(folder, at::TensorOptions(at::kFloat));
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  for (std::size_t i = 0; i < model.parameters().size(); ++i)
    EXPECT_TRUE(at::equal(model.parameters()[i].tensor, loaded->parameters()[i].tensor));
  fs::remove_all(folder);
}

TEST(Weights, OfTransformersCheckpointsAreWrittenAsTheyWereRead) {
  const fs::path folder = fs::temp_directory_path() / ("carnot_rewritten_weights_test_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  for (const std::string recorded :
       {"phi3", "phi3_window", "qwen3_moe", "qwen3_moe_window", "olmoe", "lfm2", "qwen3_5"}) {
    const auto first = load_model(kGoldenModels + recorded, at::TensorOptions(at::kBFloat16));
    ASSERT_TRUE(write_safetensors(folder / "model.safetensors", file_tensors(stored_weights(*first))).ok());
    ASSERT_TRUE(write_file_atomically(folder / "config.json", model_config_json(first->config(), "bfloat16")).ok());
    const auto again = load_model(folder, at::TensorOptions(at::kBFloat16));
    ASSERT_TRUE(again.ok()) << again.error().message;
    const auto from = read_model_tensors(kGoldenModels + recorded)->tensors, to = read_model_tensors(folder)->tensors;
    std::map<std::string, at::Tensor> written;
    for (const NamedTensor& named : to) written[named.name] = named.tensor;
    ASSERT_EQ(written.size(), from.size());
    for (const NamedTensor& named : from) EXPECT_TRUE(at::equal(named.tensor, written.at(named.name))) << named.name;
  }
  fs::remove_all(folder);
}

/// Saved by transformers 5 and 4, which name tensors differently (tools/golden/vision_checkpoints.py).
TEST(Weights, OfAModelWithAVisionTowerAreThoseOfItsText) {
  const at::NoGradGuard no_grad;
  for (const std::string name : {"gemma3_5", "gemma3_4", "mistral3_5", "mistral3_4", "ministral3_5", "smolvlm_5"}) {
    const std::string folder = source_path("tests/golden/vision/") + name;
    std::vector<std::string> messages;
    const LogSink before = set_log_sink([&](LogLevel, const std::string& message) { messages.push_back(message); });
    const auto model = load_model(folder, at::TensorOptions(at::kDouble));
    set_log_sink(before);
    ASSERT_TRUE(model.ok()) << model.error().message;
    const std::string tower = name == "smolvlm_5" ? "vision_model" : "vision_tower";
    ASSERT_EQ(messages.size(), 1u);
    EXPECT_NE(messages[0].find(tower), std::string::npos) << messages[0];
    const auto expected = read_safetensors(folder + "/expected.safetensors");
    std::map<std::string, at::Tensor> values;
    for (const NamedTensor& named : expected->tensors) values[named.name] = named.tensor;
    const int count = static_cast<int>(values.at("tokens").numel());
    const at::Tensor logits =
        model->logits(model->hidden(values.at("tokens"), at::arange(count), PackedAttention{.offsets = {0, count}}));
    EXPECT_LT((logits - values.at("logits")).abs().max().item<double>(), 1e-12) << name;
  }
}

class WeightsOf : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Families, WeightsOf, ::testing::Values("llama2", "llama3", "mistral", "qwen2", "qwen3"));

TEST_P(WeightsOf, MissingExtraAndMisshapenOnesAreAllListed) {
  const std::string folder = kGoldenModels + GetParam();
  auto model = load_model(folder, at::TensorOptions(at::kFloat));
  ASSERT_TRUE(model.ok());
  const at::Tensor before = model->parameters()[0].tensor.clone();
  std::vector<NamedTensor> tensors = read_model_tensors(folder)->tensors;
  for (NamedTensor& named : tensors) {
    if (named.name == "model.norm.weight") named.name = "model.norm.gain";
    if (named.name == "model.layers.1.mlp.up_proj.weight") named.tensor = at::zeros({48, 31});
    if (named.name == "model.embed_tokens.weight") named.tensor = at::zeros({97, 32});
  }
  const Status loaded = load_weights(*model, tensors, "here");
  ASSERT_FALSE(loaded.ok());
  for (const char* part :
       {"here: weight 'model.norm.weight' is missing", "'model.norm.gain' is not one of this model's",
        "'model.layers.1.mlp.up_proj.weight' has shape [48, 31], expected [48, 32]"})
    EXPECT_NE(loaded.error().message.find(part), std::string::npos) << loaded.error().message;
  EXPECT_TRUE(at::equal(model->parameters()[0].tensor, before)) << "nothing is filled where something is wrong";
}

TEST(Weights, StoredRotaryFrequenciesOfOlderCheckpointsArePassedOver) {
  auto model = load_model(kGoldenModels + "llama2", at::TensorOptions(at::kFloat));
  std::vector<NamedTensor> tensors = read_model_tensors(kGoldenModels + "llama2")->tensors;
  tensors.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", at::zeros({4})});
  EXPECT_TRUE(load_weights(*model, tensors, "here").ok());
}

TEST(Weights, ASecondCopyOfATiedHeadIsAcceptedOnlyWhereItIsOne) {
  auto model = load_model(kGoldenModels + "qwen2", at::TensorOptions(at::kFloat));
  ASSERT_TRUE(model.ok());
  std::vector<NamedTensor> tensors = read_model_tensors(kGoldenModels + "qwen2")->tensors;
  at::Tensor embedding;
  for (const NamedTensor& named : tensors)
    if (named.name == "model.embed_tokens.weight") embedding = named.tensor;
  tensors.push_back({"lm_head.weight", embedding.clone()});
  EXPECT_TRUE(load_weights(*model, tensors, "here").ok());
  tensors.back().tensor[0][0] += 1;
  EXPECT_FALSE(load_weights(*model, tensors, "here").ok());
}

}  // namespace
}  // namespace carnot
