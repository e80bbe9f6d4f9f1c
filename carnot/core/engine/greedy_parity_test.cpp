// Greedy generation through the engine against transformers' generate (tools/golden/transformers_parity.py).
#include <gtest/gtest.h>

#include "carnot/core/engine/decoder_runner.h"
#include "carnot/core/engine/engine.h"
#include "carnot/core/hf/safetensors.h"
#include "carnot/core/hf/weights.h"
#include "testing/paths.h"

namespace carnot {
namespace {

class GreedyParity : public ::testing::TestWithParam<std::tuple<std::string, at::ScalarType>> {
 protected:
  static std::vector<TokenId> tokens(const at::Tensor& bytes) {
    const auto* first = bytes.data_ptr<std::uint8_t>();
    return {first, first + bytes.numel()};
  }
};

INSTANTIATE_TEST_SUITE_P(Families, GreedyParity,
                         ::testing::Combine(::testing::Values("llama2", "llama3", "llama_linear", "mistral", "qwen2",
                                                              "qwen2_yarn", "qwen3", "qwen3_window", "mistral_window",
                                                              "smollm3", "olmo2", "olmo3", "granite", "gemma3",
                                                              "ministral3", "ministral3_window", "phi3", "phi3_window",
                                                              "phi3_long", "qwen3_moe", "qwen3_moe_window", "olmoe",
                                                              "lfm2", "qwen3_5", "qwen3_5_turns"),
                                            ::testing::Values(at::kFloat, at::kDouble)));

TEST_P(GreedyParity, TokenForTokenAsGenerateBesideOtherSequences) {
  const std::filesystem::path folder =
      std::filesystem::path(source_path("tests/golden/transformers")) / std::get<0>(GetParam());
  const Model model = load_model(folder, at::TensorOptions(std::get<1>(GetParam()))).value();
  std::vector<TokenId> prompt, expected;
  const auto recorded = read_safetensors(folder / "expected.safetensors");
  for (const NamedTensor& named : recorded->tensors) {
    if (named.name == "greedy.prompt") prompt = tokens(named.tensor);
    if (named.name == "greedy.ids") expected = tokens(named.tensor);
  }
  ASSERT_GT(expected.size(), 24u);

  DecoderRunner policy(model, {.blocks = 64, .states = 1});
  Engine engine(policy, {});
  const SequenceId other = engine.start(std::vector<TokenId>{9, 8, 7, 6, 5, 4, 3, 9, 8, 7, 6, 5, 4, 3, 9, 8, 7, 6, 5});
  engine.sample(other, {.key = {.seed = 3}, .max_tokens = 60});
  for (int i = 0; i < 5; ++i) engine.step();
  const SequenceId greedy = engine.start(prompt);
  engine.sample(greedy, {.sampling = {.temperature = 0}, .max_tokens = 48, .stop_tokens = model.config().eos_tokens});
  while (engine.has_work()) engine.step();
  const auto all = engine.tokens(greedy);
  EXPECT_EQ(std::vector<TokenId>(all.begin() + static_cast<std::ptrdiff_t>(prompt.size()), all.end()), expected);
}

}  // namespace
}  // namespace carnot
