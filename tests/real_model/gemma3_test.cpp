// Gemma 3 270M, installed by tools/install_gemma3.sh, against what transformers computes with the same weights and the
// published tokenizer.json (tools/golden/gemma3.py).
#include <gmock/gmock.h>

#include "carnot/core/train/model_bundle.h"
#include "carnot/core/train/recipe.h"
#include "recorded_model.h"

namespace carnot {
namespace {

using testing::Ids;

class Gemma3 : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto loaded = load_for_generation({.path = source_path(".cache/gemma3")});
    ASSERT_TRUE(loaded.ok()) << "tools/install_gemma3.sh makes the folder: " << loaded.error().message;
    loaded_ = new LoadedModel(std::move(loaded).value());
    recorded_ = new nlohmann::json(testing::recorded_model("gemma3"));
  }
  static void TearDownTestSuite() {
    delete loaded_;
    delete recorded_;
  }

  static inline const LoadedModel* loaded_ = nullptr;
  static inline const nlohmann::json* recorded_ = nullptr;
};

// A GGUF file's tokens are written with U+2581 for blanks, so U+2581 in a text is taken for one.
TEST_F(Gemma3, TokenizesAsThePublishedTokenizerDoes) {
  testing::expect_recorded_tokens(*loaded_->tokenizer, "gemma3", "\u2581");
}

TEST_F(Gemma3, ContinuesTextsAsTransformersDoes) {
  std::vector<Ids> prompts;
  for (const auto& one : recorded_->at("continuations"))
    prompts.push_back(loaded_->tokenizer->try_encode_from_begin(one.at("beginning").get<std::string>()).value());
  EXPECT_EQ(prompts[0][0], 2) << "<bos>, without which it talks nonsense";
  testing::expect_recorded_answers(*loaded_, prompts, end_tokens(*loaded_), recorded_->at("continuations"));
}

TEST_F(Gemma3, WithoutAChatTemplateIsRefusedWithAdvice) {
  auto recipe =
      Recipe::load(source_path("recipes/smollm2_calculator.yaml"), {"model.path=" + loaded_->folder.string()});
  const auto bundle = ModelBundle::open(*recipe);
  ASSERT_FALSE(bundle.ok());
  EXPECT_THAT(bundle.error().message,
              ::testing::HasSubstr("put that of an instruct model there as chat_template.jinja"));
}

TEST_F(Gemma3, EqualsTransformersLogProbabilitiesInFloat64) {
  testing::expect_recorded_log_probs(*loaded_->model, recorded_->at("scores"));
}

}  // namespace
}  // namespace carnot
