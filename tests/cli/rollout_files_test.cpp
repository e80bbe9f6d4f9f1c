// `carnot credit` and `carnot inspect` on a small file of rollouts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "program.h"
#include "testing/paths.h"

namespace carnot::testing {
namespace {

using ::testing::HasSubstr;

/// Five tokens, of which two were sampled.
OrderedJson row(const std::string& uid, const std::string& trajectory, double score) {
  return {{"uid", uid},
          {"traj_id", trajectory},
          {"score", score},
          {"input", "What?"},
          {"output", "That\x1b."},
          {"token_ids", {1, 17, 8, 9, 2}},
          {"loss_mask", {0, 0, 1, 1, 0}},
          {"segment", {"template", "prompt", "think", "action", "observation"}},
          {"note", "kept"}};
}

/// Group a: scores 1 and 0, then a failed machine. Group b: scores 2 and 2. Rows of the groups alternate.
std::vector<OrderedJson> two_groups() {
  std::vector<OrderedJson> rows{row("a", "a/0", 1), row("b", "b/0", 2), row("a", "a/1", 0), row("b", "b/1", 2),
                                row("a", "a/2", 9)};
  rows[4]["outcome"] = "infra_failed";
  rows[4]["valid"] = false;
  return rows;
}

/// The same with two turns; no turn has a gain.
OrderedJson in_two_turns(OrderedJson one) {
  one["loss_mask"] = {0, 1, 0, 1, 0};
  one["segment"] = {"prompt", "think", "observation", "action", "observation"};
  one["turns"] = {{{"start", 0}, {"end", 3}}, {{"start", 3}, {"end", 5}, {"reward", one.at("score")}}};
  return one;
}

std::string lines_of(const std::vector<OrderedJson>& rows) {
  std::string text;
  for (const OrderedJson& one : rows) text += one.dump() + "\n";
  return text;
}

std::vector<OrderedJson> rows_of(const std::string& text) {
  std::vector<OrderedJson> rows;
  for (const auto line : split_lines(text)) rows.push_back(OrderedJson::parse(line));
  return rows;
}

void expect_on_sampled(const OrderedJson& values, double expected) {
  ASSERT_EQ(values.size(), 5u);
  for (const std::size_t t : {0u, 1u, 4u}) EXPECT_TRUE(values.at(t).is_null());
  for (const std::size_t t : {2u, 3u}) EXPECT_NEAR(values.at(t).get<double>(), expected, 1e-12);
}

TEST(CreditCommand, WritesGrposAdvantagesAndLeavesTheRestUnchanged) {
  const ScratchFolder scratch;
  const std::string file = scratch.write("step_0.jsonl", lines_of(two_groups()));
  const auto run = run_carnot({"credit", file, "--method", "grpo"});
  ASSERT_EQ(run.exit, 0) << run.err;
  const auto rows = rows_of(run.out);
  ASSERT_EQ(rows.size(), 5u);
  const double advantage = 0.5 / (std::sqrt(0.5) + 1e-6);  // mean 1/2, sample deviation sqrt(1/2)
  const std::vector<double> expected{advantage, 0, -advantage, 0, 0};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    expect_on_sampled(rows[i].at("advantage"), expected[i]);
    EXPECT_EQ(rows[i].at("traj_id"), two_groups()[i].at("traj_id"));
    EXPECT_EQ(rows[i].at("note"), "kept");
    EXPECT_EQ(rows[i].at("output"), "That\x1b.");
    EXPECT_FALSE(rows[i].contains("dropped"));
  }
  expect_on_sampled(rows[0].at("weight"), 1);
  expect_on_sampled(rows[0].at("clip_scale"), 1);
}

TEST(CreditCommand, AcceptsARunFolderAndAStep) {
  const ScratchFolder scratch;
  const std::string second = scratch.write("run/rollouts/step_2.jsonl", lines_of({row("late", "late/0", 1)}));
  scratch.write("run/rollouts/step_1.jsonl", lines_of({row("early", "early/0", 1)}));
  const auto latest = run_carnot({"credit", scratch.path("run"), "--method", "rloo"});
  ASSERT_EQ(latest.exit, 0) << latest.err;
  EXPECT_EQ(rows_of(latest.out).at(0).at("uid"), "late");
  const auto first = run_carnot({"credit", scratch.path("run"), "--step", "1", "--method", "rloo"});
  ASSERT_EQ(first.exit, 0) << first.err;
  EXPECT_EQ(rows_of(first.out).at(0).at("uid"), "early");
  const auto beyond = run_carnot({"credit", scratch.path("run"), "--step", "3", "--method", "rloo"});
  EXPECT_THAT(beyond.err, HasSubstr("run: there are no rollouts of step 3; there are steps 1 to 2"));
  EXPECT_THAT(run_carnot({"credit", second, "--step", "2", "--method", "rloo"}).err,
              HasSubstr("expected a run folder"));
}

TEST(CreditCommand, AcceptsOptionsOfTheMethodInEverySpelling) {
  const ScratchFolder scratch;
  const std::string file = scratch.write("step_0.jsonl", lines_of(two_groups()));
  for (const std::string key : {"divide_by_std", "grpo.divide_by_std", "method.grpo.divide_by_std"}) {
    const auto run = run_carnot({"credit", file, "--method", "grpo", key + "=false"});
    ASSERT_EQ(run.exit, 0) << run.err;
    expect_on_sampled(rows_of(run.out).at(0).at("advantage"), 0.5);
  }
  const auto wrong = run_carnot({"credit", file, "--method", "grpo", "divide_by_sdt=false", "epsilon=tiny"});
  EXPECT_EQ(wrong.exit, 1);
  EXPECT_THAT(wrong.err, HasSubstr("did you mean divide_by_std?"));
  EXPECT_THAT(wrong.err, HasSubstr("epsilon: expected a number"));
}

TEST(CreditCommand, RefusesKeysThatNothingReadsInEverySpelling) {
  const ScratchFolder scratch;
  const std::string file = scratch.write("step_0.jsonl", lines_of(two_groups()));
  for (const std::string key : {"similarity", "gigpo.preset", "method.gigpo.reward.scaling"}) {
    const auto run = run_carnot({"credit", file, "--method", "grpo + gigpo", key + "=mean"});
    EXPECT_EQ(run.exit, 1);
    EXPECT_THAT(run.err, HasSubstr(key + (key == "similarity" ? ": expected" : ": has no effect: the base is grpo")));
  }
  // Both parts have statistics, as bases: without a name it is the base's.
  EXPECT_EQ(run_carnot({"credit", file, "--method", "grpo + gigpo", "statistics=rows"}).exit, 0);
  const auto unread = run_carnot({"credit", file, "--method", "grpo", "divide_by_std=false", "epsilon=0.5"});
  EXPECT_THAT(unread.err, HasSubstr("epsilon: has no effect: divide_by_std is false"));
}

TEST(CreditCommand, WarnsAboutCompositionsThatWorkAgainstThemselves) {
  const ScratchFolder scratch;
  auto rows = two_groups();
  for (OrderedJson& one : rows) one["entropy_old"] = {nullptr, nullptr, 0.5, 0.25, nullptr};
  const std::string file = scratch.write("step_0.jsonl", lines_of(rows));
  const auto run = run_carnot({"credit", file, "--method", "grpo + aem + gigpo"});
  EXPECT_EQ(run.exit, 0) << run.err;
  EXPECT_EQ(rows_of(run.out).size(), 5u);
  EXPECT_THAT(run.err, HasSubstr("carnot: warning: step_group adds credit after entropy_modulate"));
}

TEST(CreditCommand, AcceptsAFilterWithAnyBase) {
  const ScratchFolder scratch;
  const std::string file = scratch.write("step_0.jsonl", lines_of(two_groups()));
  const auto run = run_carnot({"credit", file, "--method", "grpo", "filter=drop_zero_variance"});
  ASSERT_EQ(run.exit, 0) << run.err;
  const auto written = rows_of(run.out);
  for (const std::size_t i : {1u, 3u}) EXPECT_EQ(written.at(i).at("dropped"), true);
  for (const std::size_t i : {0u, 2u}) EXPECT_FALSE(written.at(i).contains("dropped"));
}

TEST(CreditCommand, MarksWhatTheFilterDropsAndWritesAFile) {
  const ScratchFolder scratch;
  auto rows = two_groups();
  rows[0]["dropped"] = true;  // by another method's filter; this one decides again
  const std::string file = scratch.write("step_0.jsonl", lines_of(rows));
  const auto run = run_carnot({"credit", file, "--method", "dapo", "--output", scratch.path("out.jsonl")});
  ASSERT_EQ(run.exit, 0) << run.err;
  EXPECT_EQ(run.out, "");
  const auto written = rows_of(read_file(scratch.path("out.jsonl")).value());
  for (const std::size_t i : {1u, 3u}) EXPECT_EQ(written.at(i).at("dropped"), true);
  for (const std::size_t i : {0u, 2u, 4u}) EXPECT_FALSE(written.at(i).contains("dropped"));
}

TEST(CreditCommand, LeavesOutWhatWasNotMeasuredSinceAFilterDroppedIt) {
  const ScratchFolder scratch;
  auto rows = two_groups();
  for (OrderedJson& one : rows) one["entropy_old"] = {nullptr, nullptr, 0.5, 0.25, nullptr};
  for (const std::size_t i : {1u, 3u}) {
    rows[i]["dropped"] = true;
    rows[i].erase("entropy_old");
  }
  const auto run = run_carnot({"credit", scratch.write("step_0.jsonl", lines_of(rows)), "--method", "grpo + aem"});
  ASSERT_EQ(run.exit, 0) << run.err;
  const auto written = rows_of(run.out);
  for (const std::size_t i : {1u, 3u}) EXPECT_EQ(written.at(i).at("dropped"), true);
  for (const std::size_t i : {0u, 2u, 4u}) EXPECT_FALSE(written.at(i).contains("dropped"));
}

TEST(CreditCommand, NamesEveryMissingFieldWithItsFirstLine) {
  const ScratchFolder scratch;
  auto rows = two_groups();
  rows[0]["entropy_old"] = {nullptr, nullptr, 0.5, 0.25, nullptr};
  rows[1]["entropy_old"] = {nullptr, nullptr, 0.5, nullptr, nullptr};
  const std::string file = scratch.write("step_0.jsonl", lines_of(rows));
  const auto run = run_carnot({"credit", file, "--method", "ppo + aem", "--output", scratch.path("out.jsonl")});
  EXPECT_EQ(run.exit, 1);
  EXPECT_THAT(run.err, HasSubstr("step_0.jsonl:1: value: this field is missing; gae reads it"));
  EXPECT_THAT(run.err, HasSubstr("entropy_old"));
  EXPECT_FALSE(std::filesystem::exists(scratch.path("out.jsonl")));
}

TEST(CreditCommand, AsksForGainsWhereATurnShouldHaveOne) {
  const ScratchFolder scratch;
  auto rows = two_groups();
  const std::string single = scratch.write("single.jsonl", lines_of(rows));
  for (const char* method : {"igpo", "a2tgpo"}) {
    // A single turn is the last one, which has no gain: what is left of both methods is the outcome.
    const auto run = run_carnot({"credit", single, "--method", method});
    ASSERT_EQ(run.exit, 0) << run.err;
    const double z = 0.5 / (std::sqrt(0.25 + 1e-8) + 1e-6);  // mean 1/2, population deviation 1/2
    const auto credited = rows_of(run.out);
    expect_on_sampled(credited[0].at("advantage"), z);
    expect_on_sampled(credited[2].at("advantage"), -z);
  }
  rows[1] = in_two_turns(rows[1]);
  const std::string mixed = scratch.write("mixed.jsonl", lines_of(rows));
  const auto refused = run_carnot({"credit", mixed, "--method", "igpo"});
  EXPECT_EQ(refused.exit, 1);
  EXPECT_THAT(refused.err, HasSubstr("mixed.jsonl:2: turns[].info_gain: this field is missing"));
  // Without the answer's probability after the prompt the first turn has none either.
  EXPECT_EQ(run_carnot({"credit", mixed, "--method", "igpo", "info_gain.query_baseline=false"}).exit, 0);
}

TEST(CreditCommand, CreditsEachStepAsASeparateBatch) {
  const ScratchFolder scratch;
  auto first = two_groups(), second = two_groups();
  for (std::size_t i = 0; i < first.size(); ++i) {
    first[i]["step"] = 3;
    second[i]["step"] = 4;
    first[i]["value"] = second[i]["value"] = {nullptr, nullptr, 0.25, 0.5, nullptr};
    second[i]["score"] = 3 * static_cast<double>(i * i);
  }
  std::vector<OrderedJson> mixed;
  for (std::size_t i = 0; i < first.size(); ++i) mixed.insert(mixed.end(), {second[i], first[i]});
  const std::string files[] = {scratch.write("3.jsonl", lines_of(first)), scratch.write("4.jsonl", lines_of(second)),
                               scratch.write("mixed.jsonl", lines_of(mixed))};
  // Whitening over the batch, and a filter that ranks its groups.
  for (const char* method : {"reinforce_plus_plus", "starpo_s"}) {
    const auto own = rows_of(run_carnot({"credit", files[0], "--method", method, "objective.kl_coefficient=0"}).out);
    const auto other = rows_of(run_carnot({"credit", files[1], "--method", method, "objective.kl_coefficient=0"}).out);
    const auto run = run_carnot({"credit", files[2], "--method", method, "objective.kl_coefficient=0"});
    ASSERT_EQ(run.exit, 0) << run.err;
    const auto together = rows_of(run.out);
    ASSERT_EQ(together.size(), 10u);
    for (std::size_t i = 0; i < own.size(); ++i) {
      EXPECT_EQ(together[2 * i], other[i]) << method;
      EXPECT_EQ(together[2 * i + 1], own[i]) << method;
    }
  }
}

TEST(CreditCommand, APresetLeavesOtherOptionsUnchangedWhateverTheirNames) {
  const ScratchFolder scratch;
  const std::string file = scratch.write("one.jsonl", lines_of({row("a", "a/0", 5)}));
  // `code` lets a group of one keep its reward.
  for (const std::string option : {"", "grpo.", "method.grpo."})
    for (const std::string preset : {"", "grpo.", "method.grpo."}) {
      const auto run = run_carnot({"credit", file, "--method", "grpo", option + "singleton=zero",
                                   preset + "preset=code", "objective.kl_coefficient=0"});
      ASSERT_EQ(run.exit, 0) << run.err;
      SCOPED_TRACE(option + "singleton, " + preset + "preset");
      expect_on_sampled(rows_of(run.out).at(0).at("advantage"), 0);
    }
}

TEST(CreditCommand, ExplainsWhatAStepWouldDoToEachToken) {
  const ScratchFolder scratch;
  auto rows = two_groups();
  const double up = std::log(1.5), down = std::log(0.5);
  for (OrderedJson& one : rows) {
    one["logp_old"] = {nullptr, nullptr, -2, -2, nullptr};
    one["logp"] = {nullptr, nullptr, -2 + up, -2 + down, nullptr};
  }
  const std::string file = scratch.write("step_0.jsonl", lines_of(rows));
  const auto run = run_carnot({"credit", file, "--method", "grpo", "--explain", "divide_by_std=false",
                               "objective.kl_coefficient=0", "objective.entropy_coefficient=0.1"});
  ASSERT_EQ(run.exit, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("`gradient` leaves out the entropy bonus"));
  const auto explained = rows_of(run.out);
  // Eight sampled tokens count, two of each of the first four rows; advantages are +-1/2 in group a, 0 in group b.
  const OrderedJson &gains = explained.at(0), &loses = explained.at(2), &failed = explained.at(4);
  EXPECT_EQ(gains.at("clip_state"), OrderedJson({nullptr, nullptr, "high", "none", nullptr}));
  EXPECT_EQ(loses.at("clip_state"), OrderedJson({nullptr, nullptr, "none", "low", nullptr}));
  EXPECT_NEAR(gains.at("ratio").at(2).get<double>(), 1.5, 1e-12);
  EXPECT_EQ(gains.at("gradient").at(2), 0);
  EXPECT_NEAR(gains.at("gradient").at(3).get<double>(), -0.5 * 0.5 / 8, 1e-12);
  EXPECT_NEAR(loses.at("gradient").at(2).get<double>(), 0.5 * 1.5 / 8, 1e-12);
  for (const char* name : {"ratio", "clip_state", "gradient"})
    EXPECT_EQ(failed.at(name), OrderedJson(std::vector<OrderedJson>(5)));
  EXPECT_EQ(gains.at("note"), "kept");

  const std::string written = scratch.write("explained.jsonl", run.out);
  EXPECT_THAT(run_carnot({"inspect", written, "--row", "1", "--columns", "ratio,clip_state"}).out,
              HasSubstr("2      0     think   8   1.5    high\n"));
}

TEST(CreditCommand, ExplainsTheCriticAndScaledAdvantages) {
  const ScratchFolder scratch;
  auto rows = two_groups();
  for (OrderedJson& one : rows) {
    one["logp_old"] = one["logp"] = {nullptr, nullptr, -2, -1, nullptr};
    one["value"] = {nullptr, nullptr, 0.25, 0.5, nullptr};
    one["entropy_old"] = {nullptr, nullptr, 1, 3, nullptr};
  }
  const std::string file = scratch.write("step_0.jsonl", lines_of(rows));
  const auto critic = run_carnot({"credit", file, "--method", "ppo", "--explain", "objective.kl_coefficient=0"});
  ASSERT_EQ(critic.exit, 0) << critic.err;
  EXPECT_EQ(critic.err.find("critic"), std::string::npos) << critic.err;
  const OrderedJson valued = rows_of(critic.out).at(0);
  // With gamma and lambda 1 the target is the score, 1, on both tokens. Eight tokens count.
  EXPECT_NEAR(valued.at("value_loss").at(2).get<double>(), 0.75 * 0.75 / 2, 1e-12);
  EXPECT_NEAR(valued.at("value_gradient").at(2).get<double>(), -0.75 / 8, 1e-12);
  EXPECT_NEAR(valued.at("value_gradient").at(3).get<double>(), -0.5 / 8, 1e-12);

  const auto aepo = run_carnot({"credit", file, "--method", "aepo", "--explain"});
  ASSERT_EQ(aepo.exit, 0) << aepo.err;
  const OrderedJson scaled = rows_of(aepo.out).at(0);
  const double advantage = scaled.at("advantage").at(2).get<double>();
  const double z = 1 / std::sqrt(8.0 / 7);  // entropies 1 and 3, four of each: sample deviation sqrt(8 / 7)
  EXPECT_NEAR(scaled.at("scaled_advantage").at(2).get<double>(), advantage * (1 - 0.2 * z), 1e-12);
  EXPECT_NEAR(scaled.at("scaled_advantage").at(3).get<double>(), advantage * (1 + 0.2 * z), 1e-12);
  EXPECT_NEAR(scaled.at("gradient").at(3).get<double>(), -advantage * (1 + 0.2 * z) / 8, 1e-12);
  EXPECT_FALSE(scaled.contains("value_loss"));

  const std::string written = scratch.write("explained.jsonl", aepo.out);
  EXPECT_THAT(run_carnot({"inspect", written, "--row", "1", "--columns", "scaled_advantage"}).out,
              HasSubstr("scaled_advantage"));
}

TEST(CreditCommand, ExplanationsNameMissingFields) {
  const ScratchFolder scratch;
  const std::string file = scratch.write("step_0.jsonl", lines_of(two_groups()));
  const auto run = run_carnot({"credit", file, "--method", "grpo", "--explain", "objective.kl_coefficient=0.1"});
  EXPECT_EQ(run.exit, 1);
  EXPECT_EQ(run.out, "");
  for (const char* field : {"logp", "logp_old", "logp_ref"})
    EXPECT_THAT(run.err,
                HasSubstr("step_0.jsonl:1: " + std::string(field) + ": this field is missing; --explain reads it"));
}

TEST(CreditCommand, RefusesInvalidRolloutFilesAndUnwritableOutput) {
  const ScratchFolder scratch;
  EXPECT_THAT(run_carnot({"credit", scratch.path("absent.jsonl"), "--method", "grpo"}).err, HasSubstr("absent.jsonl"));
  const std::string broken = scratch.write("broken.jsonl", "{\"uid\": \"a\"}\nnonsense\n");
  const auto run = run_carnot({"credit", broken, "--method", "grpo"});
  EXPECT_EQ(run.exit, 1);
  EXPECT_THAT(run.err, HasSubstr("broken.jsonl:1"));
  EXPECT_THAT(run.err, HasSubstr("broken.jsonl:2"));
  const std::string file = scratch.write("step_0.jsonl", lines_of(two_groups()));
  EXPECT_EQ(run_carnot({"credit", file, "--method", "grpo", "--output", "/proc/nowhere/out.jsonl"}).exit, 1);
}

TEST(InspectCommand, ListsTheLatestRolloutsOfARunFolder) {
  const ScratchFolder scratch;
  scratch.write("run/rollouts/step_9.jsonl", lines_of({row("old", "old/0", 1)}));
  scratch.write("run/rollouts/step_10.jsonl", lines_of(two_groups()));
  EXPECT_EQ(run_carnot({"inspect", scratch.path("run")}).out,
            "row  uid  trajectory  outcome       score  penalty  turns  tokens  sampled\n"
            "1    a    a/0         finished      1      0        1      5       2\n"
            "3    a    a/1         finished      0      0        1      5       2\n"
            "5    a    a/2         infra_failed  9      0        1      5       2\n"
            "2    b    b/0         finished      2      0        1      5       2\n"
            "4    b    b/1         finished      2      0        1      5       2\n");
}

TEST(InspectCommand, ShowsSpansWithTheTokenizerOfTheRun) {
  const ScratchFolder scratch;
  const std::string file = scratch.write("run/rollouts/step_0.jsonl", lines_of(two_groups()));
  const std::string facts =
      "uid         a\ntrajectory  a/1\nstep        0\noutcome     finished\nscore       0\n\n"
      "turn  tokens  sampled  reward  penalty  valid  gain  tool  status\n"
      "0     0-5     2        0       0        yes    -\n\n";
  EXPECT_EQ(run_carnot({"inspect", file, "--traj", "a/1"}).out, facts + "input:\nWhat?\n\noutput:\nThat\\x1b.\n");
  const std::string tokenizer = source_path("tests/golden/tokenizer/qwen2_small");
  EXPECT_EQ(run_carnot({"inspect", file, "--row", "3", "--columns", "advantage", "--tokenizer", tokenizer}).out,
            facts +
                "template    | \"\nprompt      | 2\nthink       | )\naction      | *\nobservation | #\n\n"
                "token  turn  kind    id  text  advantage\n"
                "2      0     think   8   ')'   -\n"
                "3      0     action  9   '*'   -\n");
}

TEST(InspectCommand, NamesAMissingTrajectoryOrColumn) {
  const ScratchFolder scratch;
  const std::string file = scratch.write("step_0.jsonl", lines_of(two_groups()));
  EXPECT_THAT(run_carnot({"inspect", file, "--traj", "c/0"}).err, HasSubstr("there is no trajectory 'c/0'"));
  EXPECT_THAT(run_carnot({"inspect", file, "--row", "9"}).err, HasSubstr("on line 9"));
  const auto run = run_carnot({"inspect", file, "--columns", "entropie"});
  EXPECT_EQ(run.exit, 1);
  EXPECT_THAT(run.err, HasSubstr("'entropie' is unknown; expected some of logp_rollout, entropy"));
  EXPECT_THAT(run_carnot({"inspect", scratch.path(".")}).out, HasSubstr("a/0"));
}

}  // namespace
}  // namespace carnot::testing
