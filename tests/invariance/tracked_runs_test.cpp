// Runs that report to a tracker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/run/run_folder.h"
#include "tiny_runs.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::Runs;

/// The lines that a tracker recorded.
std::vector<Json> recorded(const fs::path& file) {
  std::vector<Json> messages;
  const auto text = read_file(file);
  EXPECT_TRUE(text.ok()) << (text.ok() ? "" : text.error().message);
  if (text)
    for (const std::string_view line : split_lines(*text)) messages.push_back(Json::parse(line));
  return messages;
}

std::string tracker(const std::string& script) { return "track.command=[sh, -c, '" + script + "']"; }

TEST_F(Runs, WithATrackerEqualThoseWithoutWhateverItDoes) {
  EXPECT_EQ(train("straight", {}), RunEnd::Complete);
  const std::string heard = (root_ / "heard").string();
  int number = 0;
  for (const std::string& script : {
           "cat > " + heard,                               // what it should do
           std::string("exit 1"),                          // ends at once
           std::string("read a; kill -9 $$"),              // dies of its first message
           std::string("exec sleep 1000"),                 // hangs
           std::string("while read a; do sleep 1; done"),  // is slow
           std::string("exec <&-; exec sleep 1000"),       // takes nothing
           std::string("yes"),                             // writes without end
           std::string("head -c 100000 /dev/urandom; echo {; cat > /dev/null"),
       }) {
    const std::string name = "tracked_" + std::to_string(number++);
    EXPECT_EQ(train(name, {tracker(script), "track.finish_seconds=0.3"}), RunEnd::Complete) << script;
    EXPECT_TRUE(weights(name) == weights("straight")) << script;
    EXPECT_EQ(metrics(name), metrics("straight")) << script;
  }
}

TEST_F(Runs, ReportToTheirTrackerWhatTheyRecord) {
  const fs::path heard = root_ / "heard";
  EXPECT_EQ(train("run", {tracker("cat > " + heard.string()), "track.transcripts=2"}), RunEnd::Complete);
  const std::vector<Json> messages = recorded(heard);
  ASSERT_GT(messages.size(), 4u);
  const Json& start = messages.front();
  EXPECT_EQ(start.at("type"), "start");
  EXPECT_EQ(start.at("protocol"), 1);
  EXPECT_EQ(start.at("name"), "run");
  EXPECT_EQ(start.at("folder"), (root_ / "run").string());
  EXPECT_EQ(start.at("resumed"), false);
  EXPECT_EQ(start.at("config").at("train.groups_per_step"), 3);
  EXPECT_EQ(start.at("config").at("method.name"), "ppo");
  EXPECT_EQ(messages.back(), Json::parse(R"({"type": "end", "status": "complete"})"));

  std::map<std::pair<std::string, int>, Json> numbers;
  std::map<int, int> transcripts;
  std::vector<std::string> stages;
  for (const Json& message : messages) {
    if (message.at("type") == "stage") stages.push_back(message.at("stage"));
    if (message.at("type") == "transcript") ++transcripts[message.at("step")];
    if (message.at("type") == "metrics")
      numbers[{message.at("stage"), message.at("step")}].update(message.at("metrics"));
  }
  EXPECT_EQ(stages, (std::vector<std::string>{"sft", "train"}));
  EXPECT_EQ(transcripts, (std::map<int, int>{{1, 2}, {2, 2}, {3, 2}, {4, 2}}));
  int lines = 0;
  for (const std::string& stage : {std::string("sft"), std::string("train")}) {
    const auto text = read_file(root_ / "run" / (stage == "sft" ? "warm_start" : "") / "metrics.jsonl");
    for (const std::string_view view : split_lines(*text)) {
      ++lines;
      Json line = Json::parse(view);
      const Json& seen = numbers[{stage, line.at("step")}];
      line.erase("step");
      for (const auto& [name, value] : line.items()) EXPECT_EQ(seen.value(name, Json("missing")), value) << name;
    }
  }
  EXPECT_EQ(lines, 10);
  // The evaluations before and after training.
  EXPECT_TRUE(numbers.contains({"train", 0}));
  EXPECT_GT(numbers.at({"train", 4}).size(), numbers.at({"train", 3}).size());

  // A transcript is the row of the same trajectory.
  const auto rows = read_file(root_ / "run" / "rollouts" / "step_1.jsonl");
  int compared = 0;
  for (const Json& message : messages) {
    if (message.at("type") != "transcript" || message.at("step") != 1) continue;
    for (const std::string_view view : split_lines(*rows)) {
      const Json row = Json::parse(view);
      if (row.at("uid") != message.at("uid") || row.at("traj_id") != message.at("traj_id")) continue;
      for (const char* field : {"outcome", "success", "score", "gts", "measures", "input", "output"})
        EXPECT_EQ(message.at(field), row.at(field)) << field;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 2);
}

TEST_F(Runs, ThatResumeReportTheSameIdAndTheRepeatedStepsToTheirTracker) {
  const std::string first = (root_ / "first").string(), second = (root_ / "second").string();
  EXPECT_EQ(train("run", {tracker("cat > " + first)}, stop_after("run", 8)), RunEnd::Interrupted);
  EXPECT_EQ(train("run", {tracker("cat > " + second), "resume=auto"}), RunEnd::Complete);
  const std::vector<Json> before = recorded(first), after = recorded(second);
  EXPECT_EQ(before.back().at("status"), "interrupted");
  EXPECT_EQ(after.front().at("run"), before.front().at("run"));
  EXPECT_EQ(after.front().at("resumed"), true);
  EXPECT_EQ(after.at(1), Json::parse(R"({"type": "stage", "stage": "train", "step": 2, "steps": 4})"));
  EXPECT_EQ(after.back().at("status"), "complete");
}

TEST_F(Runs, AreRefusedIfTheTrackerCannotBeStartedAndLeaveNoRun) {
  EXPECT_THAT(failure_of("run", {"track.command=[/nowhere/tracker]"}),
              HasSubstr("track.command: cannot start \"/nowhere/tracker\""));
  EXPECT_FALSE(RunFolder{root_ / "run"}.holds_run());
}

}  // namespace
}  // namespace carnot
