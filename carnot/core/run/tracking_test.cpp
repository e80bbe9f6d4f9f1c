#include "carnot/core/run/tracking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <limits>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

class TrackingTest : public ::testing::Test {
 protected:
  TrackingTest() : root_(fs::temp_directory_path() / ("carnot_tracking_" + std::to_string(::getpid()))) {
    fs::create_directories(root_ / "run");
  }
  ~TrackingTest() override { fs::remove_all(root_); }

  Tracking start(const std::string& more = "") {
    auto recipe = Recipe::parse("track: {command: [sh, -c, 'cat > " + (root_ / "heard").string() + "']" + more + "}",
                                "recipe", {});
    EXPECT_TRUE(recipe.ok()) << (recipe.ok() ? "" : recipe.error().message);
    auto tracking = Tracking::start(*recipe, RunFolder{root_ / "run"}, false);
    EXPECT_TRUE(tracking.ok()) << (tracking.ok() ? "" : tracking.error().message);
    return std::move(tracking).value();
  }

  std::vector<Json> heard() {
    std::vector<Json> messages;
    const auto text = read_file(root_ / "heard");
    for (const std::string_view line : split_lines(*text)) messages.push_back(parse_json(line, "line").value());
    return messages;
  }

  fs::path root_;
};

TEST_F(TrackingTest, WritesWhatIsNoFiniteNumberAsNull) {
  Tracking tracking = start();
  tracking.stage(kSftStage, 3, 10);
  tracking.metrics(kSftStage, 4, {{"sft/loss", 0.1}, {"sft/lr", std::numeric_limits<double>::quiet_NaN()}});
  tracking.end("failed", "the disk is full");
  const std::vector<Json> messages = heard();
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(messages[1], Json::parse(R"({"type": "stage", "stage": "sft", "step": 3, "steps": 10})"));
  EXPECT_EQ(messages[2], Json::parse(R"({"type": "metrics", "stage": "sft", "step": 4,
                                         "metrics": {"sft/loss": 0.1, "sft/lr": null}})"));
  EXPECT_EQ(messages[3], Json::parse(R"({"type": "end", "status": "failed", "message": "the disk is full"})"));
}

TEST_F(TrackingTest, GivesSettingsTheirTypes) {
  start().end("complete");
  const Json config = heard().at(0).at("config");
  EXPECT_EQ(config.at("seed"), 0);
  EXPECT_EQ(config.at("train.keep_rollouts"), true);
  EXPECT_EQ(config.at("rollout.temperature"), 1.0);
  EXPECT_EQ(config.at("method.name"), "grpo");
  EXPECT_EQ(config.at("model.path"), "");
  EXPECT_EQ(config.at("rollout.extra_signals"), "[]");
}

TEST_F(TrackingTest, SendsTranscriptsAtEvenDistances) {
  Tracking tracking = start(", transcripts: 3");
  Group group{.uid = "task"};
  for (int i = 0; i < 9; ++i) {
    Tree tree;
    tree.turns.push_back({.tokens = {1, i},
                          .sampled_begin = 1,
                          .sampled_end = 2,
                          .spans = {{SpanKind::Prompt, 0, 1}, {SpanKind::Think, 1, 2}}});
    tree.leaves.push_back({.turn = 0, .sibling = i, .trajectory_id = std::to_string(i)});
    group.trees.push_back(tree);
  }
  tracking.transcripts(5, std::span(&group, 1),
                       [](std::span<const TokenId> tokens) { return "token " + std::to_string(tokens[0]); });
  tracking.end("complete");
  std::vector<std::string> ids;
  for (const Json& message : heard())
    if (message.at("type") == "transcript") {
      ids.push_back(message.at("traj_id"));
      EXPECT_EQ(message.at("input"), "token 1");
      EXPECT_EQ(message.at("output"), "token " + ids.back());
      EXPECT_EQ(message.at("step"), 5);
    }
  EXPECT_THAT(ids, ElementsAre("0", "3", "6"));
}

TEST_F(TrackingTest, KeepsTheRunsId) {
  Tracking first = start();
  ASSERT_TRUE(first.keep_id(RunFolder{root_ / "run"}).ok());
  first.end("complete");
  const std::string id = heard().at(0).at("run");
  EXPECT_EQ(id.size(), 16u);
  start().end("complete");
  EXPECT_EQ(heard().at(0).at("run"), id);
  fs::remove(root_ / "run" / "run_id");
  start().end("complete");
  EXPECT_NE(heard().at(0).at("run"), id);
}

TEST_F(TrackingTest, ThatIsNotEndedTellsThatTheRunFailed) {
  {
    Tracking tracking = start();
  }
  EXPECT_EQ(heard().back().at("status"), "failed");
}

TEST(Tracking, WithoutACommandDoesNothing) {
  auto recipe = Recipe::parse("method: grpo", "recipe", {});
  auto tracking = Tracking::start(*recipe, RunFolder{"/nowhere"}, false);
  ASSERT_TRUE(tracking.ok());
  tracking->stage(kTrainingStage, 0, 1);
  tracking->metrics(kTrainingStage, 1, {});
  EXPECT_TRUE(tracking->keep_id(RunFolder{"/nowhere"}).ok());
  tracking->end("complete");
}

}  // namespace
}  // namespace carnot
