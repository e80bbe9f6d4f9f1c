// Runs that cannot start, cannot continue, or lose too much on the way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <sstream>

#include "carnot/core/run/run.h"
#include "carnot/core/train/model_bundle.h"
#include "tiny_runs.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::kTinyRecipe;
using testing::Runs;

/// The tasks of another environment, of which some do not open.
class FailingFactory : public EnvironmentFactory {
 public:
  using Fails = std::function<bool(Split split, std::int64_t index)>;

  FailingFactory(std::unique_ptr<EnvironmentFactory> inner, Fails fails)
      : inner_(std::move(inner)), fails_(std::move(fails)) {}

  void fields(FieldVisitor& visit) override { inner_->fields(visit); }
  Status prepare(std::uint64_t seed) override { return inner_->prepare(seed); }
  std::unique_ptr<Environment> make(Split split, std::int64_t index) const override {
    if (fails_(split, index)) throw std::runtime_error("no such world");
    return inner_->make(split, index);
  }
  std::unique_ptr<ScriptedAgent> script(const Environment& environment, double progress,
                                        RandomStream random) const override {
    return inner_->script(environment, progress, random);
  }
  std::unique_ptr<Environment> make_demonstrated(std::int64_t index, double progress) const override {
    return inner_->make_demonstrated(index, progress);
  }
  Result<std::unique_ptr<Game>> make_game(std::uint64_t seed) const override { return inner_->make_game(seed); }
  std::string answer_lead() const override { return inner_->answer_lead(); }
  std::vector<std::string> tokenizer_texts() const override { return inner_->tokenizer_texts(); }
  std::vector<std::string> tokenizer_words() const override { return inner_->tokenizer_words(); }
  std::vector<std::string> tokenizer_added_tokens() const override { return inner_->tokenizer_added_tokens(); }

 private:
  std::unique_ptr<EnvironmentFactory> inner_;
  Fails fails_;
};

// Three groups per step: tasks 6 to 8 are those of the third.
TEST_F(Runs, InWhichTooManyTrajectoriesFailEndWithACheckpointAndContinueOnceTheWorldIsBack) {
  EXPECT_EQ(train("straight", {}), RunEnd::Complete);
  const auto with_failures = [&](const FailingFactory::Fails& fails, std::vector<std::string> overrides) {
    overrides.push_back("run_folder=" + (root_ / "failed").string());
    auto recipe = Recipe::parse(kTinyRecipe, "tiny.yaml", overrides).value();
    recipe.environment = std::make_unique<FailingFactory>(std::move(recipe.environment), fails);
    std::ostringstream out;
    return run_training(recipe, {.out = out});
  };
  const auto in_third_step = [](Split split, std::int64_t index) { return split == Split::Train && index >= 7; };
  const auto refused = with_failures(in_third_step, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(
      refused.error().message,
      "training step 3: 6 of 9 trajectories were lost to infrastructure failures, more than the share of 0.5 that "
      "train.max_infra_failures allows. The first: train_7 (search_qa): no such world. A checkpoint is written. "
      "To continue, run the same command with resume=auto");
  EXPECT_TRUE(fs::exists(root_ / "failed" / "checkpoints" / "global_step_2"));
  const auto in_evaluations = [](Split split, std::int64_t) { return split == Split::Validation; };
  const auto unevaluated = with_failures(in_evaluations, {"resume=auto"});
  ASSERT_FALSE(unevaluated.ok());
  EXPECT_EQ(unevaluated.error().message.substr(0, 81),
            "evaluation after: 4 of 4 trajectories were lost to infrastructure failures, more ");
  EXPECT_TRUE(with_failures([](Split, std::int64_t) { return false; }, {"resume=auto"}).ok());
  EXPECT_TRUE(weights("failed") == weights("straight"));
  EXPECT_EQ(metrics("failed"), metrics("straight"));
}

TEST_F(Runs, MayLoseAsManyTrajectoriesAsTheRecipeAllows) {
  auto recipe = Recipe::parse(kTinyRecipe, "tiny.yaml",
                              {"train.max_infra_failures=0.7", "run_folder=" + (root_ / "some").string()})
                    .value();
  recipe.environment = std::make_unique<FailingFactory>(
      std::move(recipe.environment),
      [](Split split, std::int64_t index) { return split == Split::Train && index % 3 > 0; });
  std::ostringstream out;
  const auto end = run_training(recipe, {.out = out});
  EXPECT_TRUE(end.ok()) << (end.ok() ? "" : end.error().message);
}

TEST_F(Runs, ThatUpdateNothingFail) {
  EXPECT_EQ(failure_of("trained", {"objective.entropy_coefficient=1e300"}),
            "training: no update changed the weights; all were left out, since their gradients are not finite. The "
            "last checkpoint is written");
  EXPECT_TRUE(fs::exists(root_ / "trained" / "checkpoints" / "global_step_4"));

  auto recipe =
      Recipe::parse(kTinyRecipe, "tiny.yaml", {"model.init_std=1e30", "run_folder=" + (root_ / "sft").string()})
          .value();
  std::ostringstream out;
  const auto sft = run_sft(recipe, {.out = out});
  ASSERT_FALSE(sft.ok());
  EXPECT_EQ(sft.error().message.substr(0, 36), "SFT: no update changed the weights; ");
}

TEST_F(Runs, MoreThreadsThanAnyMachineHasAreRefused) {
  for (const std::string key : {"threads", "rollout.environment_threads"}) {
    const auto many = Recipe::parse(kTinyRecipe, "tiny.yaml", {key + "=100000"});
    ASSERT_FALSE(many.ok()) << key;
    EXPECT_NE(many.error().message.find(key + ": expected an integer"), std::string::npos) << many.error().message;
    EXPECT_NE(many.error().message.find("found 100000"), std::string::npos) << many.error().message;
  }
  const Status prepared = ModelBundle::prepare_device({.threads = 100000});
  ASSERT_FALSE(prepared.ok());
  EXPECT_EQ(prepared.error().message, "threads: 100000; expected a number from 0 to 256");
}

TEST_F(Runs, AFolderThatHoldsARunIsRefusedUnlessResumed) {
  train("run", {});
  EXPECT_THAT(failure_of("run", {}), HasSubstr("resume"));
}

TEST_F(Runs, ARecipeThatCannotStartLeavesNoFolder) {
  EXPECT_THAT(failure_of("refused", {"env.towns=7", "env.regions=3"}), HasSubstr("env.towns"));
  EXPECT_FALSE(fs::exists(root_ / "refused"));
}

TEST_F(Runs, ACorruptCheckpointIsNamed) {
  train("run", {"train.max_checkpoints=1"});
  const fs::path model = root_ / "run" / "checkpoints" / "global_step_4" / "model.safetensors";
  fs::resize_file(model, fs::file_size(model) / 2);
  EXPECT_THAT(failure_of("run", {"resume=auto"}), HasSubstr("model.safetensors"));
}

}  // namespace
}  // namespace carnot
