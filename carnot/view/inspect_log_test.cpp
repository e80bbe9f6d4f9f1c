#include "carnot/view/inspect_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "carnot/core/base/json.h"
#include "carnot/core/data/trajectory.h"
#include "testing/random_groups.h"
#include "testing/small_tokenizer.h"

namespace carnot {
namespace {

using testing::small_tokenizer;

const InspectTask kTask{.task = "search_qa",
                        .run = "quick",
                        .model = "carnot/quick",
                        .step = 12,
                        .made_at = 1795341600,
                        .settings = {{"seed", "0"}}};

/// Puts turns together from texts and their kinds.
class TurnWriter {
 public:
  TurnWriter& add(SpanKind kind, const std::string& text) {
    const std::vector<TokenId> tokens = small_tokenizer().encode(text);
    turn_.tokens.insert(turn_.tokens.end(), tokens.begin(), tokens.end());
    extend_spans(turn_.spans, kind, static_cast<int>(tokens.size()));
    return *this;
  }
  TurnWriter& begin_sampled() {
    turn_.sampled_begin = static_cast<int>(turn_.tokens.size());
    return *this;
  }
  TurnWriter& end_sampled() {
    turn_.sampled_end = static_cast<int>(turn_.tokens.size());
    return *this;
  }
  Turn done(int parent) {
    turn_.parent = parent;
    return turn_;
  }

 private:
  Turn turn_{};
};

/// A question, a search whose result continues the message, and the answer; the second member answers at once.
Group searched() {
  Turn first = TurnWriter()
                   .add(SpanKind::Template, "<|im_start|>system\n")
                   .add(SpanKind::Prompt, "Search.")
                   .add(SpanKind::Template, "<|im_end|>\n<|im_start|>user\n")
                   .add(SpanKind::Prompt, "Where is the user?")
                   .add(SpanKind::Template, "<|im_end|>\n<|im_start|>assistant\n")
                   .add(SpanKind::Prompt, "<think>")
                   .begin_sampled()
                   .add(SpanKind::Think, " I look.</think><search>")
                   .add(SpanKind::Action, "user home")
                   .add(SpanKind::Think, "</search>")
                   .end_sampled()
                   .add(SpanKind::Observation, "<result>Rome</result>")
                   .done(-1);
  first.tool = "search";
  first.reward = 0.25;
  const Turn answer = TurnWriter()
                          .begin_sampled()
                          .add(SpanKind::Action, "<answer>Rome</answer>")
                          .add(SpanKind::Think, "<|im_end|>")
                          .end_sampled()
                          .done(0);
  Turn retry = TurnWriter().begin_sampled().add(SpanKind::Think, "hmm").end_sampled().done(0);
  Tree tree;
  tree.turns = {first, answer, retry};
  tree.leaves = {{.turn = 1,
                  .sibling = 0,
                  .trajectory_id = "q.0",
                  .score = 1,
                  .success = true,
                  .measures = {{"exact_match", 1}},
                  .answer = "rome"},
                 {.turn = 2,
                  .sibling = 1,
                  .trajectory_id = "q.1",
                  .parent = 0,
                  .branch_turn = 1,
                  .outcome = Outcome::OutOfTokens,
                  .score = 0,
                  .measures = {{"exact_match", 0}}},
                 {.turn = 0,
                  .sibling = 2,
                  .trajectory_id = "q.2",
                  .parent = 0,
                  .branch_turn = 1,
                  .outcome = Outcome::InfraFailed}};
  for (int t = 0; t < 2; ++t)
    for (double& value : tree.columns.edit(Column::LogProbRollout, t, static_cast<int>(tree.turns[t].tokens.size())))
      value = -0.5;
  Group group{.uid = "q", .ground_truth = {"Rome", "Roma"}, .info = {{"hops", "2"}}};
  group.trees.push_back(tree);
  return group;
}

Json log_of(const std::vector<Group>& groups, const CreditTable& credit = {}) {
  return parse_json(inspect_log(kTask, groups, credit, small_tokenizer()), "log").value();
}

TEST(InspectLog, MakesMessagesAndToolCallsOfTurns) {
  const Json samples = log_of({searched()}).at("samples");
  ASSERT_EQ(samples.size(), 3u);
  const Json& messages = samples[0].at("messages");
  ASSERT_EQ(messages.size(), 5u) << messages.dump(1);
  EXPECT_EQ(messages[0], Json::parse(R"({"role": "system", "content": "Search."})"));
  EXPECT_EQ(messages[1], Json::parse(R"({"role": "user", "content": "Where is the user?"})"));
  EXPECT_EQ(messages[2].at("role"), "assistant");
  EXPECT_EQ(messages[2].at("content"), "<think> I look.</think><search>user home</search>");
  EXPECT_EQ(messages[2].at("tool_calls"), Json::parse(R"([{"id": "call-0", "function": "search",
                                            "arguments": {"text": "user home"}, "type": "function"}])"));
  EXPECT_EQ(messages[2].at("metadata"), Json::parse(R"({"turn": 0, "reward": 0.25})"));
  EXPECT_EQ(messages[3], Json::parse(R"({"role": "tool", "content": "<result>Rome</result>", "tool_call_id": "call-0",
                                         "function": "search"})"));
  EXPECT_EQ(messages[4].at("content"), "<answer>Rome</answer>");
  EXPECT_EQ(samples[0].at("input"), "Where is the user?");
  EXPECT_EQ(samples[0].at("target"), Json::parse(R"(["Rome", "Roma"])"));
}

TEST(InspectLog, MakesEpochsOfSiblingsAndScoresOfTheirRewards) {
  const Json log = log_of({searched()});
  const Json& samples = log.at("samples");
  for (std::size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(samples[i].at("id"), "q");
    EXPECT_EQ(samples[i].at("epoch"), i + 1);
  }
  EXPECT_EQ(log.at("eval").at("config").at("epochs"), 3);
  EXPECT_EQ(samples[0].at("scores").at("score").at("value"), 1.0);
  EXPECT_EQ(samples[0].at("scores").at("success").at("value"), 1.0);
  EXPECT_EQ(samples[0].at("scores").at("exact_match").at("value"), 1.0);
  EXPECT_EQ(samples[0].at("scores").at("score").at("answer"), "rome");
  EXPECT_EQ(samples[1].at("limit").at("type"), "token");
  EXPECT_EQ(samples[1].at("output").at("choices").at(0).at("stop_reason"), "max_tokens");
  EXPECT_EQ(samples[1].at("metadata").at("parent"), "q.0");
  // An infrastructure failure is an error, and no score.
  EXPECT_FALSE(samples[2].contains("scores"));
  EXPECT_TRUE(samples[2].contains("error"));
  EXPECT_EQ(log.at("results").at("completed_samples"), 2);
  for (const Json& one : log.at("results").at("scores")) {
    EXPECT_EQ(one.at("metrics").at("mean").at("value"), 0.5) << one.at("name");
    EXPECT_EQ(one.at("metrics").at("stderr").at("value"), 0.5) << one.at("name");
  }
}

TEST(InspectLog, CountsTokensAndHoldsLogProbabilities) {
  const std::vector<Group> groups{searched()};
  const Json log = log_of(groups);
  const std::vector<Trajectory> all = trajectories(groups);
  std::int64_t output = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Json usage = log.at("samples")[i].at("output").at("usage");
    EXPECT_EQ(usage.at("output_tokens"), all[i].num_sampled());
    EXPECT_EQ(usage.at("total_tokens"), all[i].num_tokens());
    output += all[i].num_sampled();
  }
  EXPECT_EQ(log.at("stats").at("model_usage").at("carnot/quick").at("output_tokens"), output);
  const Json tokens = log.at("samples")[0].at("output").at("choices").at(0).at("logprobs").at("content");
  EXPECT_EQ(tokens.size(), static_cast<std::size_t>(all[0].turn(1).num_sampled()));
  EXPECT_EQ(tokens[0].at("logprob"), -0.5);
}

TEST(InspectLog, IsOneForAnyGroups) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    RandomStream random(seed);
    const std::vector<Group> groups = testing::random_groups(
        random, {.vocabulary = small_tokenizer().vocab_size(), .columns = testing::all_columns()});
    const Json log = log_of(groups, testing::random_credit(random, groups));
    const std::vector<Trajectory> all = trajectories(groups);
    ASSERT_EQ(log.at("samples").size(), all.size());
    std::set<std::pair<std::string, int>> names;
    for (const Json& sample : log.at("samples")) names.emplace(sample.at("id"), sample.at("epoch"));
    EXPECT_EQ(names.size(), all.size()) << "Inspect knows a sample by its id and epoch";
  }
}

TEST(InspectLog, HasTheNameThatInspectLooksFor) {
  EXPECT_EQ(inspect_file_name(kTask), "2026-11-22T10-00-00+00-00_search-qa_quick-step-12.json");
  const Json eval = log_of({}).at("eval");
  EXPECT_EQ(eval.at("created"), "2026-11-22T10:00:00+00:00");
  EXPECT_EQ(eval.at("task"), "search_qa");
  EXPECT_EQ(eval.at("metadata").at("settings").at("seed"), "0");
}

}  // namespace
}  // namespace carnot
