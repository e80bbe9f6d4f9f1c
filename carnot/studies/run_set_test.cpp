#include "carnot/studies/run_set.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace carnot {
namespace {

namespace fs = std::filesystem;

class RunSet : public ::testing::Test {
 protected:
  RunSet() : root_(fs::temp_directory_path() / ("carnot_run_set_" + std::to_string(::getpid()))) {}
  ~RunSet() override { fs::remove_all(root_); }

  fs::path write(const std::string& name, const std::string& text) const {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
    return root_ / name;
  }

  fs::path root_;
};

TEST_F(RunSet, FindsRunsAtAnyDepthAndTheirRolloutsByStep) {
  write("study/seed_1/grpo/config.yaml", "seed: 1\nmethod: grpo\nenv: {name: sokoban}\n");
  write("study/seed_1/grpo/rollouts/step_10.jsonl", "");
  write("study/seed_1/grpo/rollouts/step_2.jsonl", "");
  write("study/seed_1/aem/config.yaml", "seed: 1\nmethod:\n  name: grpo + aem\n  aem: {lambda: 0.5}\n");
  write("study/seed_1/warm_start/config.yaml", "method: ppo\n");
  const auto runs = find_runs(std::vector{root_ / "study"});
  ASSERT_TRUE(runs.ok());
  ASSERT_EQ(runs->size(), 2u);
  EXPECT_EQ((*runs)[0].label, "grpo + aem");
  EXPECT_EQ((*runs)[0].number("method.aem.lambda", 1), 0.5);
  EXPECT_EQ((*runs)[0].number("method.aem.gate", 0.1), 0.1);
  EXPECT_EQ((*runs)[1].environment, "sokoban");
  EXPECT_EQ((*runs)[1].seed, 1);
  ASSERT_EQ((*runs)[1].rollouts.size(), 2u);
  EXPECT_EQ((*runs)[1].rollouts[0].step, 2);
  EXPECT_EQ((*runs)[1].rollouts[1].step, 10);
}

TEST_F(RunSet, RunsOfOneMethodAreToldApartByTheSettingsInWhichTheyDiffer) {
  write("a/config.yaml", "seed: 1\nmethod: {name: grpo + aem, aem: {lambda: 1}}\n");
  write("b/config.yaml", "seed: 2\nmethod: {name: grpo + aem, aem: {lambda: 1}}\n");
  write("c/config.yaml", "seed: 1\nmethod: {name: grpo + aem, aem: {lambda: -1}}\n");
  write("d/config.yaml", "seed: 1\nmethod: grpo\n");
  const auto runs = find_runs(std::vector{root_});
  ASSERT_TRUE(runs.ok());
  EXPECT_EQ(labels_of(*runs),
            (std::vector<std::string>{"grpo + aem, method.aem.lambda=1", "grpo + aem, method.aem.lambda=-1", "grpo"}));
}

TEST_F(RunSet, WhatAMethodSetsByAKeyOfItsOwnIsNotSaidTwice) {
  const auto run = [&](const std::string& name, const std::string& coefficient, const std::string& rate) {
    write(name + "/config.yaml", "method: {name: grpo + aent, aent: {coefficient: " + coefficient + "}}\n" +
                                     "objective: {entropy_coefficient: " + coefficient +
                                     "}\ntrain: {learning_rate: " + rate + "}\n");
  };
  run("a", "0.1", "1");
  run("b", "0.2", "2");
  const auto runs = find_runs(std::vector{root_});
  ASSERT_TRUE(runs.ok());
  EXPECT_EQ(labels_of(*runs), (std::vector<std::string>{
                                  "grpo + aent, method.aent.coefficient=0.1, train.learning_rate=1",
                                  "grpo + aent, method.aent.coefficient=0.2, train.learning_rate=2",
                              }));
}

TEST_F(RunSet, AFileInARunHasTheRunsSettings) {
  write("run/config.yaml", "seed: 3\nmethod: arpo\n");
  const fs::path inside = write("run/rollouts/step_4.jsonl", "");
  const fs::path alone = write("else/mine.jsonl", "");
  const auto runs = find_runs(std::vector{inside, alone});
  ASSERT_TRUE(runs.ok());
  EXPECT_EQ((*runs)[0].label, "arpo");
  EXPECT_EQ((*runs)[0].rollouts[0].step, 4);
  EXPECT_EQ((*runs)[1].label, "mine");
}

TEST_F(RunSet, NamesEveryPathThatIsMissingOrHoldsNoRun) {
  fs::create_directories(root_ / "empty");
  const auto runs = find_runs(std::vector{root_ / "empty", root_ / "nowhere"});
  ASSERT_FALSE(runs.ok());
  EXPECT_NE(runs.error().message.find("empty: holds no run"), std::string::npos);
  EXPECT_NE(runs.error().message.find("nowhere: is not there"), std::string::npos);
}

}  // namespace
}  // namespace carnot
