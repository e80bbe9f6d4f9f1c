// What can happen to a run's folder: two processes, closed descriptors, damage, other settings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "carnot/core/base/file.h"
#include "program.h"

namespace carnot::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

/// A run of a few milliseconds per step.
std::string tiny_recipe(const ScratchFolder& scratch) {
  return scratch.write("tiny.yaml", "run_folder: " + scratch.path("run") + R"(
resume: auto
env: {name: search_qa, train_worlds: 1, held_out_worlds: 1}
model: {hidden_size: 32, intermediate_size: 64, num_layers: 1, num_heads: 2, num_kv_heads: 1, head_dim: 16}
method: grpo
objective: {kl_coefficient: 0}
rollout: {group_size: 2}
train: {steps: 2, groups_per_step: 1, save_every: 1}
eval: {tasks: 1, before_training: false}
)");
}

/// The steps of the lines of metrics.jsonl; -1 for a line that is not valid.
std::vector<int> steps_logged(const ScratchFolder& scratch) {
  std::vector<int> steps;
  const auto text = read_file(scratch.path("run/metrics.jsonl"));
  if (!text) return steps;
  for (const std::string_view line : split_lines(*text)) {
    const auto row = nlohmann::json::parse(line, nullptr, false);
    steps.push_back(row.is_object() && row.contains("step") ? row["step"].get<int>() : -1);
  }
  return steps;
}

TEST(RunFolder, IsWrittenByOneProcessAtATime) {
  const ScratchFolder scratch;
  const std::string recipe = tiny_recipe(scratch);
  ProgramRun second;
  const auto first = interrupt_carnot({"train", recipe, "train.steps=100000", "train.save_every=0"}, [&] {
    if (steps_logged(scratch).empty()) return false;
    second = run_carnot({"train", recipe, "train.steps=100000", "train.save_every=0"});
    return true;
  });
  EXPECT_EQ(second.exit, 1);
  EXPECT_THAT(second.err, HasSubstr("run: is being written by process "));
  EXPECT_THAT(second.err, HasSubstr(" since "));
  EXPECT_EQ(first.exit, 130) << first.err;
  const std::vector<int> steps = steps_logged(scratch);
  for (std::size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(steps[i], static_cast<int>(i) + 1);
  EXPECT_FALSE(fs::exists(scratch.path("run/.carnot-lock")));
  const auto third = run_carnot({"train", recipe, "train.steps=" + std::to_string(steps.size() + 1)});
  EXPECT_EQ(third.exit, 0) << third.err;
}

TEST(RunFolder, OfAKilledProcessIsFree) {
  const ScratchFolder scratch;
  const std::string recipe = tiny_recipe(scratch);
  const auto killed = interrupt_carnot(
      {"train", recipe, "train.steps=100000"}, [&] { return !steps_logged(scratch).empty(); }, SIGKILL);
  ASSERT_EQ(killed.exit, -1);
  EXPECT_TRUE(fs::exists(scratch.path("run/.carnot-lock")));
  const auto resumed = run_carnot({"train", recipe, "train.steps=" + std::to_string(steps_logged(scratch).size() + 2)});
  EXPECT_EQ(resumed.exit, 0) << resumed.err;
}

/// What Carnot's first version would have recorded for this run: fewer keys, another word for the preset, and settings
/// that had no effect.
void record_as_the_first_version(const std::string& config) {
  const std::string recorded = read_file(config).value();
  std::string text;
  for (const std::string_view line : split_lines(recorded)) {
    if (line.starts_with("resume_changes:")) continue;
    if (line == "  hidden_size: 128") {
      text += "  hidden_size: 32\n";
    } else if (line == "    preset: carnot") {
      text += "    preset: paper\n";
    } else {
      text += std::string(line) + "\n" + (line == "  gigpo:" ? "    statistics: rows\n" : "");
    }
  }
  ASSERT_TRUE(write_file_atomically(config, text));
}

/// The only run that `carnot list runs` finds.
nlohmann::json listed(const ScratchFolder& scratch) {
  const auto list = run_carnot({"list", "runs", scratch.path(""), "--json"});
  EXPECT_EQ(list.exit, 0) << list.err;
  return nlohmann::json::parse(list.out).at(0);
}

TEST(RunFolder, IsListedAsRunningDeadStoppedOrFinished) {
  const ScratchFolder scratch;
  const std::vector<std::string> train{"train", tiny_recipe(scratch), "train.steps=100000"};
  nlohmann::json running;
  interrupt_carnot(
      train,
      [&] {
        if (steps_logged(scratch).size() < 3) return false;
        running = listed(scratch);
        return true;
      },
      SIGKILL);
  EXPECT_EQ(running.at("state"), "running");
  EXPECT_EQ(running.at("method"), "grpo");
  EXPECT_GE(running.at("step"), 3);
  EXPECT_EQ(running.at("steps"), 100000);
  EXPECT_TRUE(running.at("success").is_null());
  EXPECT_EQ(listed(scratch).at("state"), "dead");
  const std::size_t steps = steps_logged(scratch).size();
  EXPECT_EQ(interrupt_carnot(train, [&] { return steps_logged(scratch).size() > steps + 1; }).exit, 130);
  EXPECT_EQ(listed(scratch).at("state"), "stopped");
  EXPECT_THAT(run_carnot({"list", "runs", scratch.path("")}).out, HasSubstr(" % in training  stopped"));
  const std::string last = std::to_string(steps_logged(scratch).size() + 1);
  EXPECT_EQ(run_carnot({"train", scratch.path("run"), "train.steps=" + last}).exit, 0);
  EXPECT_EQ(listed(scratch).at("state"), "finished");
  EXPECT_TRUE(listed(scratch).at("success").is_number());
  EXPECT_THAT(run_carnot({"list", "runs", scratch.path("")}).out, HasSubstr(last + " of " + last));
  EXPECT_EQ(run_carnot({"list", "methods", scratch.path("")}).exit, 2);
}

TEST(RunFolder, OfTheFirstVersionOpens) {
  const ScratchFolder scratch;
  const std::string recipe = tiny_recipe(scratch), run = scratch.path("run"), config = run + "/config.yaml";
  const auto model = run_carnot({"train", recipe, "train.steps=1", "run_folder=" + scratch.path("model")});
  ASSERT_EQ(model.exit, 0) << model.err;
  const std::string base = "model.path=" + scratch.path("model/checkpoints/global_step_1");
  const std::vector<std::string> train{"train", recipe, base, "method=grpo + gigpo"};
  const auto first = run_carnot(train);
  ASSERT_EQ(first.exit, 0) << first.err;

  record_as_the_first_version(config);
  for (const auto& command : {std::vector<std::string>{"eval", run},
                              {"generate", "--model", run, "--max-tokens", "2", "--raw", "the"},
                              {"export", run, "--output", scratch.path("exported")}}) {
    const auto opened = run_carnot(command);
    EXPECT_EQ(opened.exit, 0) << opened.err;
    if (command[0] == "export") continue;  // it reads no recipe
    EXPECT_THAT(opened.err, HasSubstr("model.hidden_size: has no effect: model.path decides on it; ignored"));
    EXPECT_THAT(opened.err, HasSubstr("method.gigpo.statistics: has no effect: the base is grpo"));
  }

  std::vector<std::string> resume = train;
  resume.push_back("train.steps=3");
  const auto resumed = run_carnot(resume);
  EXPECT_EQ(resumed.exit, 0) << resumed.err;
  record_as_the_first_version(config);
  const auto by_config = run_carnot({"train", config, "resume=auto", "train.steps=4"});
  EXPECT_EQ(by_config.exit, 0) << by_config.err;
  EXPECT_THAT(by_config.err, HasSubstr("method.gigpo.statistics: has no effect"));
}

TEST(RunFolder, OfAComparisonIsWrittenByOneProcessAtATime) {
  const ScratchFolder scratch;
  const std::vector<std::string> compare{
      "compare",  tiny_recipe(scratch),     "--methods",         "grpo,rloo", "--seeds", "1",
      "--output", scratch.path("compared"), "train.steps=100000"};
  ProgramRun second;
  interrupt_carnot(compare, [&] {
    if (!fs::exists(scratch.path("compared/seed_1/grpo/metrics.jsonl"))) return false;
    second = run_carnot(compare);
    return true;
  });
  EXPECT_EQ(second.exit, 1);
  EXPECT_THAT(second.err, HasSubstr("compared: is being written by process "));
}

TEST(RunFolder, HoldsNoConsoleLinesIfTheProgramStartsWithClosedDescriptors) {
  const ScratchFolder scratch;
  const std::string recipe = tiny_recipe(scratch);
  for (const std::vector<int>& closed : {std::vector<int>{1}, {2}, {0, 1, 2}}) {
    fs::remove_all(scratch.path("run"));
    const auto run = run_carnot({"train", recipe, "threads=1"}, ProgramSetting{.closed = closed});
    EXPECT_EQ(steps_logged(scratch), (std::vector<int>{1, 2}));
    EXPECT_TRUE(fs::exists(scratch.path("run/summary.json")));
    const bool is_told = closed == std::vector<int>{2};
    EXPECT_EQ(run.exit, is_told ? 0 : 1) << "what standard output should have had is lost";
    if (closed == std::vector<int>{1}) {
      EXPECT_THAT(run.err, HasSubstr("standard output cannot be written"));
    }
  }
}

TEST(RunFolder, WithADamagedLatestCheckpointIsReadOnlyIfACheckpointIsNamed) {
  const ScratchFolder scratch;
  const std::string recipe = tiny_recipe(scratch), run = scratch.path("run");
  ASSERT_EQ(run_carnot({"train", recipe}).exit, 0);
  const fs::path damaged = fs::path(run) / "checkpoints" / "global_step_2" / "model.safetensors";
  const auto weights = read_file(damaged);
  fs::resize_file(damaged, 1000);
  const std::string whole = run + "/checkpoints/global_step_1";
  for (const std::vector<std::string>& command : {std::vector<std::string>{"eval", run},
                                                  {"generate", "--model", run, "hello"},
                                                  {"export", run, "--output", scratch.path("exported")}}) {
    const auto refused = run_carnot(command);
    EXPECT_EQ(refused.exit, 1) << command[0];
    EXPECT_THAT(refused.err, HasSubstr("global_step_2/model.safetensors: has 1000 bytes")) << command[0];
    EXPECT_THAT(refused.err, HasSubstr("name it: " + whole)) << command[0];
  }
  EXPECT_EQ(run_carnot({"eval", whole}).exit, 0);
  EXPECT_EQ(run_carnot({"export", whole, "--output", scratch.path("exported")}).exit, 0);

  // The run itself continues from the intact one, says so, and ends where it was.
  const auto resumed = run_carnot({"train", recipe});
  EXPECT_EQ(resumed.exit, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("skipped a damaged checkpoint"));
  EXPECT_TRUE(*read_file(damaged) == *weights);
}

TEST(RunFolder, ContinuesWithOtherSettingsOnlyIfAllowed) {
  const ScratchFolder scratch;
  const std::string recipe = tiny_recipe(scratch);
  ASSERT_EQ(run_carnot({"train", recipe}).exit, 0);
  const std::string config = *read_file(scratch.path("run/config.yaml"));
  std::vector<std::string> other{"train", recipe, "train.steps=3", "seed=7", "train.learning_rate=2e-5"};
  const auto refused = run_carnot(other);
  EXPECT_EQ(refused.exit, 1);
  EXPECT_THAT(refused.err, HasSubstr("seed: 0 recorded, 7 now"));
  EXPECT_THAT(refused.err, HasSubstr("train.learning_rate: "));
  EXPECT_THAT(refused.err, Not(HasSubstr("train.steps")));
  EXPECT_EQ(*read_file(scratch.path("run/config.yaml")), config);
  other.push_back("resume_changes=allow");
  const auto taken = run_carnot(other);
  EXPECT_EQ(taken.exit, 0) << taken.err;
  EXPECT_THAT(taken.err, HasSubstr("seed: 0 recorded, 7 now"));
  EXPECT_EQ(*read_file(scratch.path("run/earlier_configs/until_step_2.yaml")), config);
  EXPECT_THAT(*read_file(scratch.path("run/config.yaml")), HasSubstr("seed: 7"));
}

TEST(RunFolder, SaysWhichMetricsAreMissing) {
  const ScratchFolder scratch;
  const std::string recipe = tiny_recipe(scratch);
  ASSERT_EQ(run_carnot({"train", recipe}).exit, 0);
  const std::string text = *read_file(scratch.path("run/metrics.jsonl"));
  scratch.write("run/metrics.jsonl", text.substr(text.find('\n') + 1));
  const auto resumed = run_carnot({"train", recipe, "train.steps=3"});
  EXPECT_EQ(resumed.exit, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("continues after step 2, but the file has no line of step 1"));
}

TEST(RunFolder, IsNotExportedOntoItself) {
  const ScratchFolder scratch;
  const std::string run = scratch.path("run");
  ASSERT_EQ(run_carnot({"train", tiny_recipe(scratch), "train.steps=1"}).exit, 0);
  for (const std::string& output : {run, scratch.path(""), run + "/checkpoints/"}) {
    const auto refused = run_carnot({"export", run, "--output", output, "--overwrite"});
    EXPECT_EQ(refused.exit, 1);
    EXPECT_THAT(refused.err, HasSubstr("which would be lost"));
    EXPECT_TRUE(fs::exists(run + "/summary.json"));
  }
  EXPECT_EQ(run_carnot({"eval", run}).exit, 0);
}

}  // namespace
}  // namespace carnot::testing
