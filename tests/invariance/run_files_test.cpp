// What whole runs write and print: checkpoints by time, disk use, honest tables, and why a run learned nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "carnot/core/base/log.h"
#include "carnot/core/run/checkpoint_folder.h"
#include "carnot/core/run/disk_budget.h"
#include "carnot/core/run/run.h"
#include "carnot/core/train/model_bundle.h"
#include "tiny_runs.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;
using testing::bytes_in;
using testing::kLora;
using testing::kTinyRecipe;

class RunFiles : public testing::Runs {};

TEST_F(RunFiles, SaveByTimeWithoutChangingABit) {
  const std::vector<std::string> at_the_end{"train.save_every=0", "train.save_minutes=0", "train.max_checkpoints=0"};
  const std::vector<std::string> by_time{"train.save_every=0", "train.save_minutes=1e-9", "train.max_checkpoints=0"};
  EXPECT_EQ(train("end", at_the_end), RunEnd::Complete);
  EXPECT_EQ(train("time", by_time), RunEnd::Complete);
  EXPECT_FALSE(fs::exists(checkpoint("end", 3)));
  for (const int step : {1, 2, 3}) EXPECT_TRUE(fs::exists(checkpoint("time", step))) << step;
  EXPECT_TRUE(fs::exists(root_ / "time" / "warm_start" / "checkpoints" / "global_step_5")) << "SFT, too";
  EXPECT_TRUE(weights("time") == weights("end"));
  EXPECT_EQ(metrics("time"), metrics("end"));
}

TEST_F(RunFiles, WithSftOnRowsResumeToTheSameBits) {
  std::string rows;
  for (int i = 0; i < 40; ++i) {
    const std::string number = std::to_string(i * i);
    rows +=
        Json{{"prompt", "Which number is " + number + " ?"}, {"completion", "It is " + number + " ."}}.dump() + "\n";
  }
  ASSERT_TRUE(write_file_atomically(root_ / "rows.jsonl", rows).ok());
  const std::vector<std::string> on_rows{"sft.source=" + (root_ / "rows.jsonl").string(), "sft.batch_tokens=300",
                                         "sft.eval_every=2", "method=grpo"};
  expect_resumes(on_rows, 4);
  const auto sft = [this](const std::string& name) {
    std::vector<Json> steps;
    const auto text = read_file(root_ / name / "warm_start" / "metrics.jsonl");
    for (const std::string_view line : split_lines(*text)) steps.push_back(Json::parse(line));
    return steps;
  };
  EXPECT_EQ(sft("stopped"), sft("straight"));
  EXPECT_EQ(sft("straight").size(), 6u);
  for (const Json& step : sft("straight"))
    EXPECT_EQ(step.contains("val/loss"), step.at("step").get<int>() % 2 == 0) << step;
}

TEST_F(RunFiles, KeepNoOptimizerOfTheSftBeforeThem) {
  train("run", {});
  const fs::path learnt = root_ / "run" / "warm_start" / "checkpoints" / "global_step_6";
  EXPECT_TRUE(fs::exists(learnt / "model.safetensors"));
  EXPECT_FALSE(fs::exists(learnt / "optimizer.safetensors"));
  std::ostringstream out;
  auto sft = Recipe::parse(kTinyRecipe, "tiny.yaml", {"run_folder=" + (root_ / "sft").string()});
  ASSERT_TRUE(run_sft(*sft, {.out = out}).ok());
  EXPECT_TRUE(fs::exists(root_ / "sft" / "checkpoints" / "global_step_6" / "optimizer.safetensors"))
      << "only SFT may continue";
}

TEST_F(RunFiles, WithoutAnInitialEvaluationShowNone) {
  auto recipe =
      Recipe::parse(kTinyRecipe, "tiny.yaml", {"eval.before_training=false", "run_folder=" + (root_ / "run").string()});
  std::ostringstream out;
  ASSERT_TRUE(run_training(*recipe, {.out = out}).ok());
  EXPECT_EQ(out.str().find("before"), std::string::npos) << out.str();
  EXPECT_NE(out.str().find("after"), std::string::npos) << out.str();
  const Json summary = Json::parse(*read_file(root_ / "run" / "summary.json"));
  EXPECT_FALSE(summary.contains("before"));
  EXPECT_TRUE(summary.contains("after"));
}

TEST_F(RunFiles, TakeNoMoreDiskThanPredictedAndCheckpointsExactlyThat) {
  for (const std::vector<std::string>& settings : {std::vector<std::string>{"method=ppo"}, kLora}) {
    fs::remove_all(root_ / "run");
    train("run", settings);
    auto recipe = Recipe::parse(kTinyRecipe, "tiny.yaml", settings);
    const auto bundle = ModelBundle::make(*recipe);
    const MemorySettings asked = memory_settings(*recipe, bundle->config, MemoryStage::Training);
    const std::int64_t most = total_bytes(disk_budget(asked));
    EXPECT_GE(most, static_cast<std::int64_t>(bytes_in(root_ / "run")));
    EXPECT_TRUE(check_disk(asked, most, "run").ok());
    EXPECT_THAT(check_disk(asked, most - 1, "run").error().message, HasSubstr("train.max_checkpoints"));
    const StoredBytes stored = stored_bytes(asked);
    std::uintmax_t tensors = 0;
    for (const auto& entry : fs::recursive_directory_iterator(checkpoint("run")))
      if (entry.path().extension() == ".safetensors") tensors += entry.file_size();
    const auto predicted = static_cast<double>(stored.policy + stored.optimizer + stored.reference + stored.critic);
    EXPECT_NEAR(static_cast<double>(tensors) / predicted, 1, 0.1) << recipe->to_yaml();
  }
}

TEST_F(RunFiles, KeepOnlyTheLatestCheckpointsOptimizerAndContinueFromIt) {
  const std::vector<std::string> all{"train.max_checkpoints=0"};
  std::vector<std::string> last{"train.max_checkpoints=0", "train.save_optimizer=last"};
  train("all", all);
  EXPECT_EQ(train("last", last, stop_after("last", 9)), RunEnd::Interrupted);
  last.push_back("resume=auto");
  EXPECT_EQ(train("last", last), RunEnd::Complete);
  EXPECT_TRUE(weights("last") == weights("all"));
  for (const int step : {1, 2, 3, 4}) {
    EXPECT_EQ(fs::exists(checkpoint("last", step) / "optimizer.safetensors"), step == 4) << step;
    EXPECT_EQ(fs::exists(checkpoint("last", step) / "critic_optimizer.safetensors"), step == 4) << step;
    EXPECT_TRUE(weights("last", step) == weights("all", step));
    EXPECT_TRUE(verify_checkpoint(checkpoint("last", step)).ok());
  }
  fs::resize_file(checkpoint("last", 4) / "model.safetensors", 8);
  last.push_back("run_folder=" + (root_ / "last").string());
  auto recipe = Recipe::parse(kTinyRecipe, "tiny.yaml", last);
  std::ostringstream out;
  const auto refused = run_training(*recipe, {.out = out});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("train.save_optimizer=last"), std::string::npos) << refused.error().message;
}

TEST_F(RunFiles, GradientNormsAreMeansOverTheUpdatesOfAStep) {
  // If the weights do not change, every pass has the same gradients, with the groups in another order each time.
  std::optional<double> once;
  for (const int epochs : {1, 2, 3, 4}) {
    const std::string name = "run_" + std::to_string(epochs);
    train(name, {"train.learning_rate=0", "critic.learning_rate=0", "train.steps=1", "train.mini_batches=3",
                 "sft.steps=0", "train.epochs=" + std::to_string(epochs)});
    const double norm = metrics(name)[0].at("actor/grad_norm");
    EXPECT_NEAR(norm, once.value_or(norm), 1e-5 * norm) << epochs;
    once = norm;
  }
}

TEST_F(RunFiles, WithoutAGroupToLearnFromSayWhatDroppedThemAndHowOften) {
  auto recipe = Recipe::parse(kTinyRecipe, "tiny.yaml",
                              {"method=dapo", "sft.steps=0", "objective.entropy_coefficient=0", "train.steps=2",
                               "filter.max_refills=2", "run_folder=" + (root_ / "run").string()});
  std::vector<std::string> warnings;
  const auto before = set_log_sink([&](LogLevel, const std::string& message) { warnings.push_back(message); });
  std::ostringstream out;
  const auto end = run_training(*recipe, {.out = out});
  set_log_sink(before);
  ASSERT_FALSE(end.ok());
  EXPECT_EQ(end.error().message,
            "training: no update was made, since no group was left to learn from: drop_zero_variance dropped all of "
            "them, in up to 3 batches of rollouts a step. The last checkpoint is written");
  const std::string warning = "training step 2: no update: of 9 groups in 3 batches drop_zero_variance dropped all";
  EXPECT_NE(std::ranges::find(warnings, warning), warnings.end()) << ::testing::PrintToString(warnings);
  EXPECT_NE(out.str().find("no signal 100.0 %"), std::string::npos) << out.str();
}

TEST_F(RunFiles, SayHowManyGroupsHadNoSignal) {
  std::ostringstream out;
  auto recipe = Recipe::parse(kTinyRecipe, "tiny.yaml", {"sft.steps=0", "run_folder=" + (root_ / "run").string()});
  ASSERT_TRUE(run_training(*recipe, {.out = out}).ok());
  EXPECT_NE(out.str().find("Groups without signal (equal rewards): 100.0 % of all, 100.0 % in the last step\n"),
            std::string::npos)
      << out.str();
}

TEST_F(RunFiles, WithPromptsThatFillTheContextFail) {
  for (const std::string stage : {"eval.before_training=false", "eval.before_training=true"}) {
    fs::remove_all(root_ / "run");
    const std::vector<std::string> settings{"rollout.max_context_tokens=20", "sft.steps=0", stage,
                                            "run_folder=" + (root_ / "run").string()};
    auto recipe = Recipe::parse(kTinyRecipe, "tiny.yaml", settings);
    std::ostringstream out;
    const auto end = run_training(*recipe, {.out = out});
    ASSERT_FALSE(end.ok()) << stage;
    EXPECT_NE(end.error().message.find("trajectories have no response: their prompts are not shorter than "
                                       "rollout.max_context_tokens, 20"),
              std::string::npos)
        << end.error().message;
  }
}

TEST_F(RunFiles, ThatAreDeletedMeanwhileEndTheRunWithACheckpoint) {
  train("straight", {});
  for (const fs::path& deleted : {fs::path("whole"), fs::path("metrics") / "metrics.jsonl"}) {
    const std::string name = deleted.begin()->string();
    auto recipe = Recipe::parse(kTinyRecipe, "tiny.yaml", {"run_folder=" + (root_ / name).string()});
    std::ostringstream out;
    bool is_deleted = false;
    const auto end = run_training(*recipe, {.out = out, .stop_requested = [&] {
                                              if (!is_deleted && steps_logged(name) == 8)
                                                is_deleted = fs::remove_all(root_ / deleted) > 0;
                                              return false;
                                            }});
    ASSERT_FALSE(end.ok()) << name;
    EXPECT_NE(end.error().message.find("metrics.jsonl: was deleted or replaced while it was written. A checkpoint is "
                                       "written. To continue"),
              std::string::npos)
        << end.error().message;
    EXPECT_TRUE(fs::exists(root_ / name / "rollouts" / "step_3.jsonl"));
    EXPECT_EQ(train(name, {"resume=auto"}), RunEnd::Complete);
    EXPECT_TRUE(weights(name) == weights("straight"));
    EXPECT_EQ(metrics(name), (std::vector<Json>{metrics("straight")[2], metrics("straight")[3]}));
  }
}

}  // namespace
}  // namespace carnot
