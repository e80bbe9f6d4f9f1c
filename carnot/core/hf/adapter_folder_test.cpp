#include "carnot/core/hf/adapter_folder.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

#include "carnot/core/base/file.h"
#include "carnot/core/hf/adapter_config.h"
#include "carnot/core/hf/safetensors.h"
#include "carnot/core/hf/weights.h"
#include "carnot/core/nn/token_statistics.h"
#include "testing/paths.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

const std::string kGolden = source_path("tests/golden/");

Model golden_base(const std::string& family, at::ScalarType type = at::kDouble) {
  return load_model(kGolden + "transformers/" + family, at::TensorOptions(type)).value();
}

class AdapterFolder : public ::testing::Test {
 protected:
  AdapterFolder() : folder_(fs::temp_directory_path() / ("carnot_adapter_test_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~AdapterFolder() override { fs::remove_all(folder_); }

  void write(const std::string& config, const std::vector<NamedTensor>& tensors) const {
    ASSERT_TRUE(write_file_atomically(folder_ / kAdapterConfigFile, config).ok());
    ASSERT_TRUE(write_safetensors(folder_ / kAdapterWeightsFile, tensors).ok());
  }

  fs::path folder_;
};

/// What PEFT computed (tools/golden/peft_parity.py).
TEST(AdapterFolders, OfPeftGiveItsStatesAndGradients) {
  for (const auto& [name, family, targets] :
       {std::tuple("qwen2_all", "qwen2", 7), std::tuple("qwen3_some", "qwen3", 3), std::tuple("olmoe_some", "olmoe", 3),
        std::tuple("lfm2_all", "lfm2", 8), std::tuple("qwen3_5_all", "qwen3_5", 11)}) {
    for (KernelChoice kernels : {KernelChoice::Own, KernelChoice::Portable}) {
      Model model = golden_base(family);
      model.choose_kernels(kernels);
      const Status loaded = load_adapters(model, kGolden + "peft/" + name);
      ASSERT_TRUE(loaded.ok()) << loaded.error().message;
      EXPECT_EQ(model.lora().targets.size(), static_cast<std::size_t>(targets));
      std::map<std::string, at::Tensor> expected;
      const auto file = read_safetensors(kGolden + "peft/" + name + "/expected.safetensors");
      for (const NamedTensor& named : file->tensors) expected[named.name] = named.tensor;
      const auto expect_close = [&](const at::Tensor& got, const std::string& what) {
        EXPECT_LT(((got - expected.at(what)).abs().max() / expected.at(what).abs().max()).item<double>(), 1e-12)
            << what;
      };
      const at::Tensor& tokens = expected.at("tokens");
      const int count = static_cast<int>(tokens.numel());
      model.requires_grad(true);
      const at::Tensor hidden = model.hidden(tokens, at::arange(count), PackedAttention{.offsets = {0, count}});
      expect_close(hidden.detach(), "hidden");
      const auto statistics =
          token_statistics(hidden.slice(0, 0, count - 1), model.head(), tokens.slice(0, 1), {.kernels = kernels});
      const at::Tensor loss = -statistics.logprob_T.mean();
      expect_close(loss.detach().reshape({1}), "loss");
      loss.backward();
      for (const NamedTensor& adapter : peft_tensors(model))
        expect_close(adapter.tensor.grad(), "grad." + adapter.name);
    }
  }
}

TEST_F(AdapterFolder, WrittenAndReadAgainHoldsTheSameBits) {
  Model model = golden_base("qwen2", at::kFloat);
  model.add_adapters({.rank = 2, .alpha = 0.5, .targets = {"v_proj", "gate_proj"}}, 4);
  write(adapter_config_json(model.lora(), "some/base"), peft_tensors(model));
  Model other = golden_base("qwen2", at::kFloat);
  const Status loaded = load_adapters(other, folder_);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(other.lora(), model.lora());
  for (std::size_t i = 0; i < model.adapters().size(); ++i)
    EXPECT_TRUE(at::equal(model.adapters()[i].tensor, other.adapters()[i].tensor));
}

TEST_F(AdapterFolder, NamesEverythingThatIsNotComputed) {
  Model model = golden_base("qwen2");
  write(
      R"({"peft_type": "LOHA", "r": 0, "lora_alpha": 8, "use_dora": true, "bias": "all", "rank_pattern": {"q_proj": 4},
            "modules_to_save": ["lm_head"], "alpha_pattern": {}})",
      {{"x", at::zeros({1})}});
  const Status loaded = load_adapters(model, folder_);
  ASSERT_FALSE(loaded.ok());
  for (const char* part : {"peft_type is \"LOHA\"", "r is 0", "use_dora is true", "bias is \"all\"",
                           "rank_pattern is {\"q_proj\":4}", "modules_to_save is [\"lm_head\"]"})
    EXPECT_THAT(loaded.error().message, ::testing::HasSubstr(part));
  EXPECT_THAT(loaded.error().message, ::testing::Not(::testing::HasSubstr("alpha")));
  EXPECT_FALSE(model.has_adapters());
}

TEST_F(AdapterFolder, OfFusedProjectionsIsRefusedWithAWayOut) {
  Model model = golden_base("phi3");
  const std::string attention = "base_model.model.model.layers.0.self_attn.";
  write(adapter_config_json({.rank = 2}, ""), {{attention + "qkv_proj.lora_A.weight", at::zeros({2, 32})},
                                               {attention + "qkv_proj.lora_B.weight", at::zeros({64, 2})},
                                               {attention + "o_proj.lora_A.weight", at::zeros({2, 32})},
                                               {attention + "o_proj.lora_B.weight", at::zeros({32, 2})}});
  const Status loaded = load_adapters(model, folder_);
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(loaded.error().message,
              ::testing::HasSubstr("adapter_model.safetensors: has adapters of qkv_proj; expected ones of q_proj, "));
  EXPECT_THAT(loaded.error().message, ::testing::HasSubstr("merge_and_unload()"));
}

TEST_F(AdapterFolder, NamesMissingMisshapenAndUnknownMatrices) {
  Model model = golden_base("qwen2");
  model.add_adapters({.rank = 2, .targets = {"o_proj"}}, 4);
  auto tensors = peft_tensors(model);
  tensors.pop_back();
  tensors[0].tensor = at::zeros({3, 32});
  tensors.push_back({"base_model.model.lm_head.lora_A.weight", at::zeros({2, 32})});
  write(adapter_config_json(model.lora(), ""), tensors);
  Model other = golden_base("qwen2");
  const Status loaded = load_adapters(other, folder_);
  ASSERT_FALSE(loaded.ok());
  for (const char* part : {"layers.1.self_attn.o_proj.lora_B.weight' is missing",
                           "layers.0.self_attn.o_proj.lora_A.weight' has shape [3, 32], expected [2, 32]",
                           "lm_head.lora_A.weight' is not one of this model's"})
    EXPECT_THAT(loaded.error().message, ::testing::HasSubstr(part));
}

}  // namespace
}  // namespace carnot
