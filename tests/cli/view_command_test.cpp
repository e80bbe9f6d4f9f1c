// `carnot view`: the page of a run, and Inspect's logs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "program.h"

namespace carnot::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string text_of(const std::string& path) {
  const auto text = read_file(path);
  EXPECT_TRUE(text.ok()) << (text.ok() ? "" : text.error().message);
  return text ? *text : "";
}

Json data_of(const std::string& html) {
  const std::string start = "id=\"data\">";
  const auto begin = html.find(start) + start.size();
  return Json::parse(html.substr(begin, html.find("</script>", begin) - begin));
}

/// Three steps of a small run, in the folder `run`.
void train(const ScratchFolder& scratch) {
  const std::string recipe = scratch.write("tiny.yaml", "run_folder: " + scratch.path("run") + R"(
env: {name: search_qa, train_worlds: 1, held_out_worlds: 1}
model: {hidden_size: 32, intermediate_size: 64, num_layers: 1, num_heads: 2, num_kv_heads: 1, head_dim: 16}
method: grpo
objective: {kl_coefficient: 0}
rollout: {group_size: 2, max_context_tokens: 256, max_response_tokens: 16}
train: {steps: 3, groups_per_step: 2}
eval: {tasks: 1, before_training: false}
)");
  const auto run = run_carnot({"train", recipe});
  ASSERT_EQ(run.exit, 0) << run.err;
}

TEST(ViewCommand, WritesAPageOfARun) {
  const ScratchFolder scratch;
  train(scratch);
  const auto run = run_carnot({"view", scratch.path("run")});
  ASSERT_EQ(run.exit, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("6 groups in " + scratch.path("run/view.html")));
  const Json data = data_of(text_of(scratch.path("run/view.html")));
  EXPECT_EQ(data.at("title"), "run");
  EXPECT_EQ(data.at("facts"), Json::parse(R"([["method", "grpo"], ["environment", "search_qa"], ["seed", "0"]])"));
  std::multiset<int> steps;
  int sampled = 0;
  for (const Json& group : data.at("groups")) {
    steps.insert(group.at("step").get<int>());
    for (const Json& tree : group.at("trees"))
      for (const Json& leaf : tree.at("leaves")) {
        // The run's own objective says what was clipped.
        EXPECT_TRUE(leaf.contains("clip")) << leaf.dump();
        EXPECT_TRUE(leaf.contains("ratio")) << leaf.dump();
        EXPECT_TRUE(leaf.contains("advantage")) << leaf.dump();
        sampled += static_cast<int>(leaf.at("clip").get<std::string>().size());
      }
  }
  EXPECT_EQ(steps, (std::multiset<int>{1, 1, 2, 2, 3, 3}));
  EXPECT_GT(sampled, 50);
}

TEST(ViewCommand, SaysWhatIsLeftOffThePage) {
  const ScratchFolder scratch;
  train(scratch);
  const std::string page = scratch.path("page.html");
  const auto chosen = run_carnot({"view", scratch.path("run"), "--steps", "2", "--output", page});
  ASSERT_EQ(chosen.exit, 0) << chosen.err;
  EXPECT_THAT(data_of(text_of(page)).at("notes").dump(), HasSubstr("Steps 2 of 3 are on this page"));
  const auto small = run_carnot({"view", scratch.path("run"), "--megabytes", "0.005", "--output", page});
  ASSERT_EQ(small.exit, 0) << small.err;
  EXPECT_THAT(small.out, HasSubstr("of 6 groups found no room and were left out"));
  const auto none = run_carnot({"view", scratch.path("run"), "--steps", "9"});
  EXPECT_EQ(none.exit, 1);
  EXPECT_THAT(none.err, HasSubstr("there are no rollouts of step 9; there are steps 1 to 3"));
}

TEST(ViewCommand, WritesLogsForInspect) {
  const ScratchFolder scratch;
  train(scratch);
  const auto run = run_carnot({"view", scratch.path("run"), "--inspect", scratch.path("logs")});
  ASSERT_EQ(run.exit, 0) << run.err;
  int logs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(scratch.path("logs"))) {
    EXPECT_THAT(entry.path().filename().string(), HasSubstr("_search-qa_run-step-"));
    const Json log = Json::parse(text_of(entry.path().string()));
    EXPECT_EQ(log.at("samples").size(), 4u);
    EXPECT_EQ(log.at("eval").at("metadata").at("settings").at("method.name"), "grpo");
    ++logs;
  }
  EXPECT_EQ(logs, 3);
}

TEST(ViewCommand, ShowsRowsOfAnySystem) {
  const ScratchFolder scratch;
  const std::string rows = scratch.write(
      "rows.jsonl",
      "{\"uid\":\"</script>\\u001b\",\"traj_id\":\"a/0\",\"score\":1.0,\"token_ids\":[1,2,3],\"loss_mask\":[0,1,1]}\n");
  const auto run = run_carnot({"view", rows});
  ASSERT_EQ(run.exit, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("1 group in " + scratch.path("rows.html")));
  EXPECT_THAT(run.out, HasSubstr("No tokenizer was found: tokens are shown as ids"));
  const Json data = data_of(text_of(scratch.path("rows.html")));
  EXPECT_EQ(data.at("groups").at(0).at("uid"), "</script>\x1b");
  const auto logs = run_carnot({"view", rows, "--inspect", scratch.path("logs")});
  EXPECT_EQ(logs.exit, 1);
  EXPECT_THAT(logs.err, HasSubstr("has no tokenizer, and messages are texts; name it with --tokenizer"));
}

TEST(ViewCommand, RefusesAFolderThatIsNotARun) {
  const ScratchFolder scratch;
  EXPECT_THAT(run_carnot({"view", scratch.path("none")}).err, HasSubstr("none: cannot open"));
  const auto damaged = run_carnot({"view", scratch.write("rows.jsonl", "{\"uid\": 1}\n")});
  EXPECT_EQ(damaged.exit, 1);
  EXPECT_THAT(damaged.err, HasSubstr("rows.jsonl:1: "));
  EXPECT_THAT(damaged.err, Not(HasSubstr("internal error")));
}

}  // namespace
}  // namespace carnot::testing
