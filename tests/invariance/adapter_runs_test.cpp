// Runs that train adapters.
#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/hf/adapter_folder.h"
#include "carnot/core/hf/safetensors.h"
#include "carnot/core/hf/weights.h"
#include "carnot/core/run/run.h"
#include "carnot/core/train/model_bundle.h"
#include "tiny_runs.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;
using testing::bytes_in;
using ::testing::HasSubstr;
using testing::kLora;
using testing::kTinyRecipe;
using testing::Runs;

TEST_F(Runs, WithAdaptersTrainTheAdaptersAlone) {
  train("run", kLora);
  const auto tensors = [&](int step, const std::string& file) {
    return read_safetensors(checkpoint("run", step) / file)->tensors;
  };
  // The base is the recipe's random model, bit for bit, for every checkpoint.
  auto recipe = Recipe::parse(kTinyRecipe, "tiny.yaml", kLora);
  const auto bundle = ModelBundle::make(*recipe);
  const Model stored = bundle->policy->clone();
  for (int step : {3, 4}) {
    const auto base = find_base(checkpoint("run", step));
    ASSERT_TRUE(base.ok()) << base.error().message;
    ASSERT_TRUE(load_weights(stored, read_model_tensors(*base)->tensors, "base").ok());
    for (std::size_t i = 0; i < stored.parameters().size(); ++i)
      EXPECT_TRUE(at::equal(stored.parameters()[i].tensor, bundle->policy->parameters()[i].tensor)) << i;
  }
  // The method's KL needs a reference: the adapters as they were at the start of training, and nothing else.
  const auto now = tensors(4, "adapter/adapter_model.safetensors"), reference = tensors(4, "reference.safetensors");
  ASSERT_EQ(now.size(), 28u);
  ASSERT_EQ(reference.size(), 28u);
  for (std::size_t i = 0; i < now.size(); ++i)
    EXPECT_FALSE(at::equal(now[i].tensor, reference[i].tensor)) << now[i].name;
  // The optimizer has only the adapters.
  EXPECT_EQ(tensors(4, "optimizer.safetensors").size(), 2u * 28u);
}

TEST_F(Runs, WithAdaptersStoppedAndResumedEqualTheUninterruptedRun) {
  train("straight", kLora);
  for (const std::size_t steps : {3u, 8u}) {
    const std::string name = "stopped_" + std::to_string(steps);
    EXPECT_EQ(train(name, kLora, stop_after(name, steps)), RunEnd::Interrupted);
    std::vector<std::string> resumed = kLora;
    resumed.push_back("resume=auto");
    EXPECT_EQ(train(name, resumed), RunEnd::Complete);
    EXPECT_TRUE(weights(name) == weights("straight")) << "stopped after " << steps << " steps";
  }
  EXPECT_THAT(failure_of("straight", {"lora.rank=4", "resume=auto"}),
              HasSubstr("holds adapters of rank 3, alpha 6 on q_proj"));
}

TEST_F(Runs, WithAdaptersStoreTheWeightsBelowThemOnce) {
  train("run", kLora);
  int models = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root_ / "run"))
    models += entry.path().filename() == "model.safetensors" ? 1 : 0;
  EXPECT_EQ(models, 1);
  // PPO's critic is its own model.
  std::uintmax_t adapters = bytes_in(checkpoint("run") / "adapter"), rest = adapters;
  for (const char* file : {"optimizer.safetensors", "reference.safetensors", "critic.safetensors",
                           "critic_optimizer.safetensors", "tokenizer.json"})
    rest += fs::file_size(checkpoint("run") / file);
  EXPECT_LT(bytes_in(checkpoint("run")), rest + 6000);
}

/// The layout of version 0.1: the frozen weights and the merged ones in the checkpoint.
void make_old(const fs::path& checkpoint) {
  const auto base = find_base(checkpoint);
  fs::copy(*base, checkpoint / kBaseFolder);
  const auto merged = load_merged(checkpoint, at::TensorOptions(at::kFloat));
  ASSERT_TRUE(write_safetensors(checkpoint / "model.safetensors", merged->parameters()).ok());
  fs::remove(checkpoint / "base_model.json");
  Json manifest = Json::parse(*read_file(checkpoint / "MANIFEST.json"));
  manifest["files"].erase("base_model.json");
  for (const std::string name : {"model.safetensors", "base/model.safetensors", "base/config.json"})
    manifest["files"][name] = {{"size", fs::file_size(checkpoint / name)},
                               {"sha256", *sha256_of_file(checkpoint / name)}};
  ASSERT_TRUE(write_file_atomically(checkpoint / "MANIFEST.json", manifest.dump()).ok());
}

TEST_F(Runs, WithAdaptersContinueFromCheckpointsOfTheEarlierLayout) {
  train("straight", kLora);
  EXPECT_EQ(train("old", kLora, stop_after("old", 8)), RunEnd::Interrupted);
  make_old(checkpoint("old", 2));
  fs::remove_all(checkpoint("old", 1));
  fs::remove_all(root_ / "old" / "warm_start" / "base");
  std::vector<std::string> resumed = kLora;
  resumed.push_back("resume=auto");
  EXPECT_EQ(train("old", resumed), RunEnd::Complete);
  EXPECT_TRUE(weights("old") == weights("straight"));
  EXPECT_FALSE(fs::exists(checkpoint("old") / "model.safetensors"));
  std::ostringstream out;
  make_old(checkpoint("old"));
  EXPECT_TRUE(run_evaluation({.path = root_ / "old", .json = true}, {.out = out}).ok());
}

TEST_F(Runs, WithAdaptersOnAModelReferToItAndReportItsChanges) {
  train("start", {"train.steps=0"});
  fs::copy(root_ / "start" / "warm_start" / "checkpoints" / "global_step_6", root_ / "model");
  std::vector<std::string> settings = kLora;
  for (const std::string& more : {"model.path=" + (root_ / "model").string(), std::string("sft.steps=0")})
    settings.push_back(more);
  std::string shapeless = kTinyRecipe;  // model.path decides on the shape
  shapeless.erase(shapeless.find("model:"), shapeless.find("\nenv:") + 1 - shapeless.find("model:"));
  recipe_ = shapeless.c_str();
  train("straight", settings);
  EXPECT_EQ(train("stopped", settings, stop_after("stopped", 2, 3)), RunEnd::Interrupted);
  EXPECT_FALSE(fs::exists(root_ / "straight" / "base"));
  EXPECT_EQ(*find_base(checkpoint("straight")), root_ / "model");
  settings.push_back("resume=auto");

  const std::string config = *read_file(root_ / "model" / "config.json");
  ASSERT_TRUE(write_file_atomically(root_ / "model" / "config.json", config + "\n").ok());
  EXPECT_THAT(failure_of("stopped", settings),
              HasSubstr("model: changed since the adapters were trained on it: config.json"));
  ASSERT_TRUE(write_file_atomically(root_ / "model" / "config.json", config).ok());
  EXPECT_EQ(train("stopped", settings), RunEnd::Complete);
  EXPECT_TRUE(weights("stopped") == weights("straight"));
  EXPECT_EQ(metrics("stopped"), metrics("straight"));
}

TEST_F(Runs, WithAdaptersHaveRolloutLogProbsThatEqualRecomputedOnes) {
  std::vector<std::string> kept = kLora;
  std::vector<std::string> recomputed = kLora;
  kept.push_back("rollout.old_log_probs=rollout");
  recomputed.push_back("rollout.old_log_probs=recompute");
  train("recomputed", recomputed);
  train("kept", kept);
  EXPECT_TRUE(weights("recomputed") == weights("kept"));
  const auto metrics = read_file(root_ / "kept" / "metrics.jsonl");
  for (std::string_view line : split_lines(*metrics))
    EXPECT_NE(line.find("\"rollout_corr/log_prob_abs_diff/max\":0.0,"), std::string_view::npos) << line;
}

}  // namespace
}  // namespace carnot
