// SmolLM2-135M-Instruct, installed by tools/install_smollm2.sh, against what transformers computes with the same
// weights (tools/golden/smollm2.py).
#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "carnot/core/base/file.h"
#include "carnot/core/run/run.h"
#include "carnot/core/train/trainer.h"
#include "recorded_model.h"
#include "testing/chat_templates.h"
#include "testing/conversations.h"

namespace carnot {
namespace {

using nlohmann::json;
using testing::Ids;

std::string folder() { return source_path(".cache/smollm2"); }

class RealModel : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    testing::use_source_python();
    auto loaded = load_for_generation({.path = folder()});
    ASSERT_TRUE(loaded.ok()) << "tools/install_smollm2.sh makes the folder: " << loaded.error().message;
    loaded_ = new LoadedModel(std::move(loaded).value());
    recorded_ = new json(testing::recorded_model("smollm2"));
  }
  static void TearDownTestSuite() {
    delete loaded_;
    delete recorded_;
  }

  static const Tokenizer& tokenizer() { return *loaded_->tokenizer; }

  static inline const LoadedModel* loaded_ = nullptr;
  static inline const json* recorded_ = nullptr;
};

TEST_F(RealModel, TokenizesAsHuggingFaceDoes) { testing::expect_recorded_tokens(tokenizer(), "smollm2"); }

TEST_F(RealModel, RendersConversationsAsTransformersDoes) {
  ASSERT_NE(loaded_->chat, nullptr) << loaded_->chat_problem;
  EXPECT_EQ(loaded_->chat->name(), "template");
  for (const json& one : recorded_->at("conversations")) {
    std::vector<Message> messages;
    for (const json& message : one.at("messages"))
      messages.push_back({.role = message.at("role"), .content = message.at("content")});
    EXPECT_EQ(loaded_->chat->render_opening(messages, "").tokens, one.at("ids").get<Ids>()) << one.at("text");
  }
  EXPECT_TRUE(check_append_only(*loaded_->chat).ok());
}

TEST_F(RealModel, LearnsFromTheTokensThatTransformersMasksInConversations) {
  testing::expect_recorded_masks(*loaded_->chat, "smollm2");
}

TEST_F(RealModel, AnswersAsTransformersDoes) {
  std::vector<Ids> prompts;
  for (const json& one : recorded_->at("answers")) {
    const std::vector<Message> question = {{"user", one.at("question")}};
    prompts.push_back(loaded_->chat->render_opening(question, "").tokens);
  }
  EXPECT_EQ(testing::expect_recorded_answers(*loaded_, prompts, answer_end_tokens(*loaded_), recorded_->at("answers")),
            "The capital of France is Paris.");
}

TEST_F(RealModel, EqualsTransformersLogProbabilitiesInFloat64) {
  testing::expect_recorded_log_probs(*loaded_->model, recorded_->at("scores"));
}

TEST_F(RealModel, TrainsTwoSteps) {
  constexpr const char* kRecipe = R"(
env: {name: search_qa, train_worlds: 2, held_out_worlds: 1}
objective: {entropy_coefficient: 0.01}
rollout: {group_size: 2, max_context_tokens: 512, max_response_tokens: 12}
train: {steps: 2, groups_per_step: 1, learning_rate: 1e-5}
)";
  Recipe recipe = Recipe::parse(kRecipe, "test", {"model.path=" + folder()}).value();
  ASSERT_TRUE(ModelBundle::prepare_device(recipe.run).ok());
  ModelBundle bundle = ModelBundle::make(recipe).value();
  EXPECT_EQ(bundle.chat->name(), "template");
  bundle.add_companions(recipe);
  const at::Tensor before = bundle.policy->trained()[0].tensor.detach().clone();
  OneProcess alone;
  Trainer trainer(recipe, bundle, alone);
  for (int step = 0; step < 2; ++step) {
    const auto metrics = trainer.step(step).value().metrics;
    EXPECT_GT(metrics.at("rollout/sampled_tokens"), 0);
    EXPECT_GT(metrics.at("actor/grad_norm"), 0);
    EXPECT_EQ(metrics.at("actor/skipped_updates"), 0);
    EXPECT_EQ(metrics.at("rollout_corr/reused"), 1);
    EXPECT_EQ(metrics.at("rollout_corr/log_prob_abs_diff/max"), 0);
  }
  EXPECT_FALSE(at::equal(before, bundle.policy->trained()[0].tensor));
}

/// recipes/smollm2_calculator.yaml at a small size, in this folder.
Result<RunEnd> run_recipe(const std::filesystem::path& run_folder, const std::vector<std::string>& more,
                          const std::function<bool()>& stop_requested) {
  std::vector<std::string> settings{"model.path=" + folder(),
                                    "run_folder=" + run_folder.string(),
                                    "sft.steps=1",
                                    "sft.batch_tokens=200",
                                    "train.steps=2",
                                    "train.decay=constant",  // it would end at 0 with the second step
                                    "train.save_every=1",
                                    "train.save_optimizer=last",
                                    "train.groups_per_step=1",
                                    "rollout.group_size=4",
                                    "train.reward=random",
                                    "filter.name=none",
                                    "env.max_response_tokens=16",
                                    "eval.tasks=2",
                                    "eval.every=0"};
  settings.insert(settings.end(), more.begin(), more.end());
  Recipe recipe = Recipe::load(source_path("recipes/smollm2_calculator.yaml"), settings).value();
  std::ostringstream out;
  return run_training(recipe, {.out = out, .stop_requested = stop_requested});
}

/// A folder that is gone with the test, however it ends: its checkpoints have gigabytes.
struct LargeFolder {
  ~LargeFolder() { std::filesystem::remove_all(path); }
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("carnot_real_model_" + std::to_string(getpid()));
};

TEST_F(RealModel, IsTrainedByItsRecipeAndResumesToTheSameWeights) {
  const LargeFolder root;
  const auto run = [&](const std::vector<std::string>& more, int stop_after) {
    const auto steps_logged = [&] {
      const auto text = read_file(root.path / "metrics.jsonl");
      return text ? std::ssize(split_lines(*text)) : 0;
    };
    return run_recipe(root.path, more, [=] { return steps_logged() == stop_after; }).value();
  };
  const auto weights = [&](int step) {
    return sha256_of_file(root.path / "checkpoints" / ("global_step_" + std::to_string(step)) / "model.safetensors")
        .value();
  };
  EXPECT_EQ(run({}, -1), RunEnd::Complete);
  const std::string first = weights(1), second = weights(2);
  EXPECT_NE(first, second);
  std::filesystem::remove_all(root.path);
  EXPECT_EQ(run({}, 1), RunEnd::Interrupted);
  EXPECT_EQ(run({"resume=auto"}, -1), RunEnd::Complete);
  EXPECT_EQ(weights(2), second);
}

}  // namespace
}  // namespace carnot
