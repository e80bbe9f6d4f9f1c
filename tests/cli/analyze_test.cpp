// `carnot analyze`: every analysis from end to end on a tiny run, and its messages if the input lacks something.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "program.h"

namespace carnot::testing {
namespace {

using ::testing::HasSubstr;

class Analyze : public ::testing::Test {
 protected:
  /// Runs the analysis and reads back its numbers.
  Json numbers(const std::string& name, std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"analyze", name, "--output", scratch_.path("out")});
    const auto run = run_carnot(arguments);
    EXPECT_EQ(run.exit, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr("paper"));
    const auto page = read_file(scratch_.path("out/" + name + ".html"));
    EXPECT_TRUE(page.ok());
    if (page) {
      EXPECT_THAT(*page, HasSubstr("new uPlot("));
    }
    const auto text = read_file(scratch_.path("out/" + name + ".json"));
    return text ? Json::parse(*text) : Json::object();
  }

  ScratchFolder scratch_;
};

TEST_F(Analyze, ListsAllAnalyses) {
  const auto list = run_carnot({"list", "analyses"});
  EXPECT_THAT(list.out, HasSubstr("aent-sparse"));
  EXPECT_THAT(run_carnot({"analyze", "--help"}).out, HasSubstr(list.out));
  EXPECT_THAT(run_carnot({"analyze", "aent-sparse", "--help"}).out, HasSubstr("seeds=20"));
  EXPECT_EQ(Json::parse(run_carnot({"list", "analyses", "--json"}).out).at(0).at("name"), "aem-proxy");
}

TEST_F(Analyze, RefusesUnknownAnalyses) {
  EXPECT_THAT(run_carnot({"analyze", "aent-sprase"}).err, HasSubstr("did you mean 'aent-sparse'?"));
  EXPECT_THAT(run_carnot({"analyze", "aent-sparse", "steeps=3"}).err, HasSubstr("steeps: unknown key"));
  EXPECT_THAT(run_carnot({"analyze", "aent-sparse", "a/folder"}).err, HasSubstr("reads nothing"));
  EXPECT_EQ(run_carnot({"analyze"}).exit, 2);
}

TEST_F(Analyze, TakesAnExistingFolderForAPathWhateverItsName) {
  scratch_.write("igpo,method.igpo.pool=separate/notes.txt", "no run\n");
  const auto run = run_carnot({"analyze", "a2tgpo-gain", scratch_.path("igpo,method.igpo.pool=separate")});
  EXPECT_THAT(run.err, HasSubstr("igpo,method.igpo.pool=separate: holds no run"));
}

TEST_F(Analyze, SyntheticOnesNeedNoInput) {
  const Json theorem = numbers("aem-theorem", {"policies=20"});
  EXPECT_EQ(theorem.at("tables").at("drift").size(), 60u);
  EXPECT_EQ(theorem.at("findings").at(0).at("here"), "20 of 20 (100.0 %)");
  const Json sparse = numbers("aent-sparse", {"seeds=2", "steps=20", "actions=50", "optimal=[2, 10]"});
  EXPECT_EQ(sparse.at("options").at("seeds"), "2");
  EXPECT_EQ(sparse.at("tables").at("summary").size(), 8u);
}

/// Two runs of a few steps that differ in their method.
class AnalyzeRuns : public Analyze {
 protected:
  static void SetUpTestSuite() {
    study_ = std::make_unique<ScratchFolder>();
    for (const std::string method : {"grpo", "grpo + aem"}) {
      const std::string recipe =
          study_->write("tiny.yaml", "run_folder: " + folder(method) + "\nmethod: " + method + R"(
env: {name: search_qa, train_worlds: 1, held_out_worlds: 1}
model: {hidden_size: 32, intermediate_size: 64, num_layers: 1, num_heads: 2, num_kv_heads: 1, head_dim: 16}
objective: {kl_coefficient: 0}
rollout: {group_size: 3, max_response_tokens: 12, extra_signals: [reference, info_gain]}
train: {steps: 3, groups_per_step: 2, mini_batches: 2, save_every: 1, max_checkpoints: 0}
eval: {tasks: 1, before_training: false}
)");
      const auto run = run_carnot({"train", recipe});
      ASSERT_EQ(run.exit, 0) << run.err;
    }
  }
  static void TearDownTestSuite() { study_.reset(); }

  static std::string folder(const std::string& method) {
    return study_->path(method == "grpo" ? "runs/base" : "runs/aem");
  }
  static std::string checkpoint(int step) {
    return folder("grpo") + "/checkpoints/global_step_" + std::to_string(step);
  }

  static std::unique_ptr<ScratchFolder> study_;
};
std::unique_ptr<ScratchFolder> AnalyzeRuns::study_;

TEST_F(AnalyzeRuns, RolloutsOfEveryRunAreRead) {
  const std::string runs = study_->path("runs");
  EXPECT_EQ(numbers("aepo-branches", {runs}).at("inputs").at(0), runs);
  EXPECT_EQ(numbers("aepo-diversity", {runs}).at("tables").at("diversity").size(), 2u);
  EXPECT_EQ(numbers("aepo-budget", {runs}).at("tables").at("groups").size(), 12u);
  EXPECT_EQ(numbers("aepo-budget", {runs, "first_step=2", "last_step=2"}).at("tables").at("groups").size(), 4u);
  EXPECT_GE(numbers("aepo-clip", {runs, "bins=2"}).at("tables").at("by entropy").size(), 1u);
  EXPECT_TRUE(numbers("a2tgpo-similarity", {runs}).at("tables").contains("similarity by step"));
  EXPECT_EQ(numbers("actfocus-energy", {runs}).at("findings").size(), 3u);
  EXPECT_EQ(numbers("actfocus-weights", {folder("grpo")}).at("tables").at("gradient mass").size(), 15u);
  EXPECT_EQ(numbers("aem-cost", {folder("grpo + aem")}).at("findings").at(0).at("paper"), "1.1 %");
}

TEST_F(AnalyzeRuns, MetricsAreComparedByMethod) {
  const std::string runs = study_->path("runs");
  for (const std::string name :
       {"aem-transition", "aem-ablation", "aepo-ablation", "a2tgpo-sweep", "actfocus-ablation", "actfocus-sweep"})
    EXPECT_EQ(numbers(name, {runs}).at("tables").at("by run").size(), 2u) << name;
  EXPECT_EQ(numbers("aem-ablation", {runs}).at("findings").at(1).at("paper"), "65.0 % (WebShop)");
  EXPECT_EQ(numbers("actfocus-ablation", {runs}).at("findings").at(1).at("paper"), "no weights");
  EXPECT_EQ(numbers("a2tgpo-lengths", {runs}).at("tables").at("by step").size(), 12u);
}

TEST_F(AnalyzeRuns, PoliciesAreSampledAndTrained) {
  const Json proxy = numbers("aem-proxy", {folder("grpo"), "states=3", "samples=4", "tasks=2", "aem.gate=0"});
  EXPECT_EQ(proxy.at("tables").at("states").size(), 3u);
  const Json& steadiness = proxy.at("findings").back();
  EXPECT_GT(std::stod(steadiness.at("here").get<std::string>()), 0) << steadiness;
  const Json drift = numbers("aem-drift", {folder("grpo"), "steps=2", "aem.gate=0", "train.groups_per_step=1"});
  EXPECT_EQ(drift.at("tables").at("by step").size(), 6u);
  const Json signs =
      numbers("aem-drift", {folder("grpo"), "steps=1", "arms=signs", "aem.gate=0", "train.reward=random"});
  EXPECT_EQ(signs.at("tables").at("by step").size(), 4u);
  std::vector<double> kept;
  for (const Json& row : signs.at("tables").at("by step"))
    kept.push_back(row.at("share of tokens in the loss").get<double>());
  EXPECT_EQ(kept[0], kept[1]) << "AEM keeps signs";
  EXPECT_EQ(kept[2], kept[3]);
  EXPECT_GE(kept[0] + kept[2], 1) << "every response is in one of them";
  EXPECT_LT(kept[0] + kept[2], 2) << "and not all in both";
  const Json signals = numbers("actfocus-signals", {checkpoint(1), checkpoint(2), checkpoint(3), "tasks=2"});
  EXPECT_EQ(signals.at("tables").at("drift").size(), 8u);
  EXPECT_NEAR(signals.at("tables").at("drift").at(0).at("Pearson").get<double>(), 1.0, 1e-12);
  EXPECT_TRUE(signals.at("tables").at("drift").at(6).at("Pearson").is_null());  // the shift at the reference
}

TEST_F(AnalyzeRuns, TheOracleEvaluatesEveryStateAndGoesOnAfterAStop) {
  const std::vector<std::string> settings{folder("grpo"), "tasks=3", "trajectories=4", "samples=128",
                                          "methods=grpo, grpo + aem, a2tgpo"};
  const Json oracle = numbers("credit-oracle", settings);
  EXPECT_EQ(oracle.at("tables").at("methods").size(), 3u);
  for (const Json& state : oracle.at("tables").at("states")) EXPECT_EQ(state.at("continuations"), 128);
  std::map<std::string, double> sums, starts, scores;
  for (const Json& turn : oracle.at("tables").at("turns")) {
    const auto trajectory = turn.at("trajectory").get<std::string>();
    sums[trajectory] += turn.at("advantage").get<double>();
    scores[trajectory] = turn.at("score").get<double>();
    if (turn.at("turn") == 1) starts[trajectory] = turn.at("value before").get<double>();
  }
  EXPECT_EQ(sums.size(), 4u);
  for (const auto& [trajectory, sum] : sums) EXPECT_NEAR(sum, scores[trajectory] - starts[trajectory], 1e-12);
  // As after a stop: only the first batch of continuations is there.
  const std::string kept = scratch_.path("out/credit-oracle.continuations.jsonl");
  const std::string all = read_file(kept).value();
  ASSERT_GT(split_lines(all).size(), 1u);
  ASSERT_TRUE(write_file_atomically(kept, all.substr(0, all.find('\n') + 1)).ok());
  const Json resumed = numbers("credit-oracle", settings);
  EXPECT_EQ(resumed.at("tables"), oracle.at("tables"));
  EXPECT_EQ(read_file(kept).value(), all);
}

TEST_F(AnalyzeRuns, WrongInputIsNamed) {
  EXPECT_THAT(run_carnot({"analyze", "aepo-clip", scratch_.path("nowhere")}).err, HasSubstr("nowhere: is not there"));
  EXPECT_THAT(run_carnot({"analyze", "aem-proxy"}).err, HasSubstr("expected one run folder or checkpoint folder"));
  EXPECT_THAT(run_carnot({"analyze", "aem-proxy", folder("grpo"), "rollout.group_sise=3"}).err,
              HasSubstr("did you mean rollout.group_size?"));
  EXPECT_THAT(run_carnot({"analyze", "a2tgpo-gain", folder("grpo")}).err, HasSubstr("info_gain"));
}

}  // namespace
}  // namespace carnot::testing
