// `carnot view`: the page of a run, and Inspect's logs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
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
void train(const ScratchFolder& scratch, const std::string& method = "grpo") {
  const std::string recipe = scratch.write("tiny.yaml", "run_folder: " + scratch.path("run") + R"(
env: {name: search_qa, train_worlds: 1, held_out_worlds: 1}
model: {hidden_size: 32, intermediate_size: 64, num_layers: 1, num_heads: 2, num_kv_heads: 1, head_dim: 16}
method: )" + method + R"(
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
        const Json& credit = leaf.at("credit").at(0);
        EXPECT_TRUE(credit.contains("ratio")) << leaf.dump();
        EXPECT_TRUE(credit.contains("advantage")) << leaf.dump();
        sampled += static_cast<int>(credit.at("clip").get<std::string>().size());
      }
  }
  EXPECT_EQ(steps, (std::multiset<int>{1, 1, 2, 2, 3, 3}));
  EXPECT_GT(sampled, 50);
}

/// Sampled tokens of each turn of a leaf.
std::vector<std::size_t> turns_of(const Json& tree, const Json& leaf) {
  std::vector<std::size_t> sampled;
  for (int turn = leaf.at("turn"); turn >= 0; turn = tree.at("turns").at(static_cast<std::size_t>(turn)).at("parent")) {
    const Json& range = tree.at("turns").at(static_cast<std::size_t>(turn)).at("sampled");
    sampled.insert(sampled.begin(), range.at(1).get<std::size_t>() - range.at(0).get<std::size_t>());
  }
  return sampled;
}

/// A list of the page, token by token, however short it is written.
std::vector<Json> by_token(const Json& list, const std::vector<std::size_t>& turns) {
  if (list.is_array()) return list;
  std::vector<Json> values;
  for (std::size_t k = 0; k < turns.size(); ++k)
    values.insert(values.end(), turns[k], list.is_object() ? list.at("turns").at(k) : list);
  return values;
}

/// The page's list is the row's on sampled tokens, in five digits.
void expect_shown(const Json& list, const std::vector<std::size_t>& turns, const Json& row, const std::string& field) {
  const std::vector<Json> shown = by_token(list, turns);
  std::size_t next = 0;
  for (std::size_t t = 0; t < row.at("loss_mask").size(); ++t) {
    if (row.at("loss_mask").at(t) == 0) continue;
    const Json& expected = row.at(field).at(t);
    ASSERT_LT(next, shown.size()) << field;
    EXPECT_EQ(shown[next].is_null(), expected.is_null()) << field;
    if (!expected.is_null()) {
      EXPECT_NEAR(shown[next].get<double>(), expected.get<double>(), 1e-4 * std::fabs(expected.get<double>())) << field;
    }
    ++next;
  }
  EXPECT_EQ(next, shown.size()) << field;
}

/// Rows of a step by trajectory, as trained, and as `carnot credit --explain` writes them.
std::map<std::string, Json> rows_by_name(const std::string& text) {
  std::map<std::string, Json> rows;
  for (const std::string_view line : split_lines(text)) {
    const Json row = Json::parse(line);
    rows[row.at("traj_id")] = row;
  }
  return rows;
}

/// Each number of the page's method is that of the rows: the end of its chain, the ratio, the gradient.
void expect_method(const Json& data, std::size_t method, const std::map<std::string, Json>& rows) {
  int compared = 0;
  for (const Json& group : data.at("groups"))
    for (const Json& tree : group.at("trees"))
      for (const Json& leaf : tree.at("leaves")) {
        const Json& row = rows.at(leaf.at("id"));
        const Json& credit = leaf.at("credit").at(method);
        const std::vector<std::size_t> turns = turns_of(tree, leaf);
        for (const char* field : {"advantage", "weight", "clip_scale", "ratio", "gradient"})
          expect_shown(credit.value(field, Json()), turns, row, field);
        Json last{{"advantage", 0}, {"weight", 1}};
        for (const Json& rule : credit.at("chain"))
          for (const char* field : {"advantage", "weight"})
            if (rule.contains(field)) last[field] = rule.at(field);
        for (const char* field : {"advantage", "weight"}) expect_shown(last.at(field), turns, row, field);
        ++compared;
      }
  EXPECT_GT(compared, 0);
}

TEST(ViewCommand, ShowsHowTheCreditOfTrainingCameAbout) {
  const ScratchFolder scratch;
  train(scratch, "grpo + aem + actfocus");
  const std::string page = scratch.path("page.html"), explained = scratch.path("explained.jsonl");
  const auto run = run_carnot({"view", scratch.path("run"), "--steps", "2", "--output", page});
  ASSERT_EQ(run.exit, 0) << run.err;
  const auto credit = run_carnot({"credit", scratch.path("run"), "--step", "2", "--method", "grpo + aem + actfocus",
                                  "--explain", "--output", explained, "objective.kl_coefficient=0"});
  ASSERT_EQ(credit.exit, 0) << credit.err;
  const Json data = data_of(text_of(page));
  expect_method(data, 0, rows_by_name(text_of(explained)));
  EXPECT_EQ(data.at("methods").at(0).at("name"), "grpo + aem + actfocus");
  std::set<std::string> read;
  for (const Json& rule : data.at("groups").at(0).at("trees").at(0).at("leaves").at(0).at("credit").at(0).at("chain")) {
    const Json none = Json::object(), readings = rule.value("read", none);
    for (const auto& reading : readings.items()) read.insert(reading.key());
  }
  for (const char* name : {"group mean", "response entropy", "its rank"}) EXPECT_TRUE(read.contains(name)) << name;
  // Training's own rows end where the chain does.
  const auto trained = rows_by_name(text_of(scratch.path("run/rollouts/step_2.jsonl")));
  for (const auto& [name, row] : rows_by_name(text_of(explained)))
    for (const char* field : {"advantage", "weight"}) EXPECT_EQ(row.at(field), trained.at(name).at(field)) << name;
}

TEST(ViewCommand, ComputesTheCreditOfSeveralMethodsAsCreditDoes) {
  const ScratchFolder scratch;
  train(scratch, "grpo + aem");
  const std::string page = scratch.path("page.html");
  const auto run = run_carnot(
      {"view", scratch.path("run"), "--steps", "3", "--output", page, "--methods",
       "gigpo [objective.kl_coefficient=0], grpo + aem [aem.lambda=0.5 objective.kl_coefficient=0], a2tgpo, ppo"});
  ASSERT_EQ(run.exit, 0) << run.err;
  const Json data = data_of(text_of(page));
  const std::vector<std::vector<std::string>> methods{{"gigpo", "objective.kl_coefficient=0"},
                                                      {"grpo + aem", "aem.lambda=0.5", "objective.kl_coefficient=0"}};
  for (std::size_t m = 0; m < methods.size(); ++m) {
    const std::string explained = scratch.path("explained.jsonl");
    std::vector<std::string> arguments{"credit",    scratch.path("run"), "--step", "3",
                                       "--explain", "--output",          explained};
    arguments.push_back("--method");
    arguments.insert(arguments.end(), methods[m].begin(), methods[m].end());
    const auto credit = run_carnot(arguments);
    ASSERT_EQ(credit.exit, 0) << credit.err;
    expect_method(data, m, rows_by_name(text_of(explained)));
    EXPECT_FALSE(data.at("methods").at(m).contains("missing"));
  }
  EXPECT_EQ(data.at("methods").at(1).at("name"), "grpo + aem [aem.lambda=0.5 objective.kl_coefficient=0]");
  EXPECT_THAT(data.at("methods").at(3).at("missing").get<std::string>(), HasSubstr("value: this field is missing"));
  EXPECT_THAT(run.out, HasSubstr("ppo is not shown: "));
  const auto unknown = run_carnot({"view", scratch.path("run"), "--methods", "grpo, nonsense"});
  EXPECT_EQ(unknown.exit, 1);
  EXPECT_THAT(unknown.err, HasSubstr("nonsense: there is no method 'nonsense'"));
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
