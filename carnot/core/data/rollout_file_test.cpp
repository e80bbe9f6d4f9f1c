#include "carnot/core/data/rollout_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "testing/random_groups.h"
#include "testing/trials.h"

namespace carnot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::string decode(std::span<const TokenId> tokens) {
  std::string text;
  for (const TokenId token : tokens) text += "<" + std::to_string(token) + ">";
  return text;
}

RolloutFile read(const std::string& text) {
  auto file = parse_rollout_rows(text, "r.jsonl");
  EXPECT_TRUE(file.ok()) << (file.ok() ? "" : file.error().message);
  return file.ok() ? std::move(file).value() : RolloutFile();
}

std::string error_of(const std::string& text) {
  const auto file = parse_rollout_rows(text, "r.jsonl");
  return file.ok() ? "no error" : file.error().message;
}

/// A small valid row to modify.
OrderedJson row(const std::string& id = "a") {
  return {{"uid", "task"}, {"traj_id", id}, {"token_ids", {1, 2, 3, 4}}, {"loss_mask", {0, 1, 1, 0}}, {"score", 0.5}};
}

/// Two turns: tokens 1 2 | 3 4.
OrderedJson two_turns(const std::string& id = "a") {
  OrderedJson json = row(id);
  json["turns"] = {{{"start", 0}, {"end", 2}}, {{"start", 2}, {"end", 4}}};
  return json;
}

std::string line(const OrderedJson& json) { return json.dump() + "\n"; }

TEST(RolloutFile, WritesReadsAndWritesTheSameBytes) {
  RandomStream random(1);
  for (int trial = 0; trial < testing::trials(100); ++trial) {
    std::vector<Column> columns = testing::all_columns();
    random.shuffle(columns);
    columns.resize(random.below(columns.size() + 1));
    const auto groups = testing::random_groups(random, {.dropped_share = 0.2, .columns = columns});
    const CreditTable credit = random.chance(0.5) ? testing::random_credit(random, groups) : CreditTable();
    const std::string written = rollout_rows(groups, credit, decode);
    const RolloutFile file = read(written);
    EXPECT_EQ(rollout_rows(file.groups, file.credit, decode), written) << "trial " << trial;
  }
}

TEST(RolloutFile, StoresSharedTurnsOnceAfterReading) {
  RandomStream random(2);
  for (int trial = 0; trial < testing::trials(50); ++trial) {
    const auto groups = testing::random_groups(random, {.branch_share = 0.8});
    const RolloutFile file = read(rollout_rows(groups, {}, decode));
    ASSERT_EQ(file.groups.size(), groups.size());
    for (std::size_t g = 0; g < groups.size(); ++g) {
      ASSERT_EQ(file.groups[g].trees.size(), groups[g].trees.size());
      for (std::size_t t = 0; t < groups[g].trees.size(); ++t) {
        EXPECT_EQ(file.groups[g].trees[t].turns.size(), groups[g].trees[t].turns.size());
        EXPECT_THAT(violations(file.groups[g].trees[t]), IsEmpty());
      }
    }
  }
}

TEST(RolloutFile, KeepsWhatCreditNeedsToTheLastBit) {
  RandomStream random(3);
  const auto groups = testing::random_groups(random, {.groups = 20, .columns = {Column::EntropyOld}});
  const CreditTable credit = testing::random_credit(random, groups);
  const RolloutFile file = read(rollout_rows(groups, credit, decode));
  const auto before = trajectories(groups);
  const auto after = trajectories(file.groups);
  ASSERT_EQ(after.size(), before.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(after[i].tokens(), before[i].tokens());
    EXPECT_EQ(after[i].sampled(), before[i].sampled());
    EXPECT_EQ(after[i].kinds(), before[i].kinds());
    EXPECT_EQ(after[i].penalised_score(), before[i].penalised_score());
    EXPECT_EQ(after[i].leaf().outcome, before[i].leaf().outcome);
    EXPECT_EQ(after[i].leaf().sibling, before[i].leaf().sibling);
    EXPECT_EQ(after[i].leaf().measures, before[i].leaf().measures);
    EXPECT_EQ(after[i].leaf().answer, before[i].leaf().answer);
    EXPECT_EQ(after[i].group->seed, before[i].group->seed);
    EXPECT_EQ(after[i].group->ground_truth, before[i].group->ground_truth);
    EXPECT_EQ(file.credit[i].advantage, credit[i].advantage);
    EXPECT_EQ(file.credit[i].clip_scale, credit[i].clip_scale);
    for (int k = 0; k < before[i].num_turns(); ++k) {
      EXPECT_EQ(after[i].turn(k).info_gain, before[i].turn(k).info_gain);
      EXPECT_EQ(after[i].turn(k).anchor, before[i].turn(k).anchor);
      EXPECT_EQ(after[i].turn(k).context, before[i].turn(k).context);
    }
    const auto old_entropy = before[i].column(Column::EntropyOld);
    const auto new_entropy = after[i].column(Column::EntropyOld);
    for (std::size_t t = 0; t < old_entropy.size(); ++t)
      EXPECT_TRUE(new_entropy[t] == old_entropy[t] || (std::isnan(new_entropy[t]) && std::isnan(old_entropy[t])));
  }
}

TEST(RolloutFile, WritesSeedsThatNoJsonReaderRounds) {
  std::vector<Group> groups{{.uid = "task", .seed = 18446744073709551615u, .step = 8, .trees = {{}}}};
  groups[0].trees[0] = {.turns = {{.tokens = {7}, .sampled_end = 1, .spans = {{SpanKind::Action, 0, 1}}}},
                        .leaves = {{.turn = 0, .trajectory_id = "a"}}};
  const std::string text = rollout_rows(groups, {}, decode);
  const OrderedJson written = OrderedJson::parse(text);
  EXPECT_EQ(written["seed"], "18446744073709551615");
  EXPECT_EQ(written["step"], 8);
  EXPECT_EQ(read(text).groups[0].seed, groups[0].seed);
  EXPECT_EQ(read(text).groups[0].step, 8);
}

TEST(RolloutFile, OfVersion1CountedStepsFrom0AndWroteSeedsAsNumbers) {
  OrderedJson old = row();
  old["version"] = 1;
  old["step"] = 7;
  old["seed"] = 18446744073709551615u;
  const RolloutFile file = read(line(old));
  EXPECT_EQ(file.groups[0].step, 8);
  EXPECT_EQ(file.groups[0].seed, 18446744073709551615u);
}

TEST(RolloutFile, WritesVerlsFieldsAndNullsWhereNothingWasSampled) {
  Tree tree{.turns = {{.tokens = {7, 8, 9},
                       .sampled_begin = 1,
                       .sampled_end = 2,
                       .spans = {{SpanKind::Prompt, 0, 1}, {SpanKind::Action, 1, 2}, {SpanKind::Observation, 2, 3}}}},
            .leaves = {{.turn = 0, .trajectory_id = "a", .outcome = Outcome::InfraFailed, .score = 0.25}}};
  tree.columns.edit(Column::EntropyRollout, 0, 3)[1] = 0.1;
  const std::vector<Group> groups{{.uid = "task", .step = 12, .ground_truth = {"42"}, .trees = {tree}}};
  const OrderedJson json = OrderedJson::parse(rollout_rows(groups, fresh_credit(trajectories(groups)), decode));
  EXPECT_EQ(json["input"], "<7>");
  EXPECT_EQ(json["output"], "<8><9>");
  EXPECT_EQ(json["gts"], OrderedJson({"42"}));
  EXPECT_EQ(json["score"], 0.25);
  EXPECT_EQ(json["step"], 12);
  EXPECT_EQ(json["prompt_tokens"], 1);
  EXPECT_EQ(json["outcome"], "infra_failed");
  EXPECT_EQ(json["valid"], false);
  EXPECT_EQ(json["loss_mask"], OrderedJson({0, 1, 0}));
  EXPECT_EQ(json["segment"], OrderedJson({"prompt", "action", "observation"}));
  EXPECT_EQ(json["entropy"], OrderedJson({nullptr, 0.1, nullptr}));
  EXPECT_EQ(json["weight"], OrderedJson({nullptr, 1.0, nullptr}));
  EXPECT_TRUE(json["parent"].is_null());
  EXPECT_EQ(json.count("dropped"), 0u);
}

TEST(ForeignRows, NeedFiveFieldsOnly) {
  const RolloutFile file = read(line(row("a")) + "\n" + line(row("b")));
  ASSERT_EQ(file.groups.size(), 1u);
  ASSERT_EQ(file.groups[0].trees.size(), 2u);
  EXPECT_THAT(file.line_of_row, ElementsAre(1, 3));
  EXPECT_THAT(file.credit, IsEmpty());
  const Trajectory first = trajectories(file.groups)[0];
  EXPECT_EQ(first.leaf().score, 0.5);
  EXPECT_EQ(first.turn(0).reward, 0.5);
  EXPECT_THAT(first.sampled(), ElementsAre(false, true, true, false));
  EXPECT_THAT(first.kinds(), ElementsAre(SpanKind::Prompt, SpanKind::Think, SpanKind::Think, SpanKind::Observation));
}

TEST(ForeignRows, GetNoGuessedTurns) {
  OrderedJson json = row();
  json["loss_mask"] = {0, 1, 0, 1};
  EXPECT_EQ(error_of(line(json)), "r.jsonl:1: misses the field turns: loss_mask has several runs of sampled tokens");
  json["turns"] = {{{"start", 0}, {"end", 2}}, {{"start", 2}, {"end", 4}}};
  const RolloutFile file = read(line(json));
  EXPECT_EQ(trajectories(file.groups)[0].num_turns(), 2);
  EXPECT_THAT(trajectories(file.groups)[0].kinds(),
              ElementsAre(SpanKind::Prompt, SpanKind::Think, SpanKind::Observation, SpanKind::Think));
}

TEST(ForeignRows, MayNumberTasksAndUseBoolsForMasks) {
  OrderedJson json = row();
  json["uid"] = 17;
  json["gts"] = 42;
  json["loss_mask"] = {false, true, true, false};
  json["somebody_elses"] = {{"field", 1}};
  const RolloutFile file = read(line(json));
  EXPECT_EQ(file.groups[0].uid, "17");
  EXPECT_THAT(file.groups[0].ground_truth, ElementsAre("42"));
}

TEST(ForeignRows, CountAnInvalidRowAsAnInfrastructureFailure) {
  OrderedJson json = row();
  json["valid"] = false;
  EXPECT_FALSE(trajectories(read(line(json)).groups)[0].leaf().valid());
}

TEST(ForeignRows, OfOneGroupNeedNotBeAdjacent) {
  OrderedJson other = row("x");
  other["uid"] = "other";
  const RolloutFile file = read(line(row("a")) + line(other) + line(row("b")));
  ASSERT_EQ(file.groups.size(), 2u);
  EXPECT_THAT(file.line_of_row, ElementsAre(1, 3, 2));
}

TEST(ForeignRows, OfDifferentStepsAreDifferentGroups) {
  OrderedJson later = row("a");
  later["step"] = 1;
  EXPECT_EQ(read(line(row("a")) + line(later)).groups.size(), 2u);
}

TEST(Trees, ABranchSharesItsParentsTurns) {
  OrderedJson child = two_turns("b");
  child["parent"] = "a";
  child["branch_turn"] = 1;
  child["token_ids"] = {1, 2, 9, 9};
  const RolloutFile file = read(line(two_turns("a")) + line(child));
  ASSERT_EQ(file.groups[0].trees.size(), 1u);
  EXPECT_EQ(file.groups[0].trees[0].turns.size(), 3u);
  EXPECT_THAT(trajectories(file.groups)[1].tokens(), ElementsAre(1, 2, 9, 9));
}

TEST(Trees, ABranchThatDiffersFromItsParentIsRefused) {
  OrderedJson child = two_turns("b");
  child["parent"] = "a";
  child["branch_turn"] = 1;
  child["token_ids"] = {1, 9, 3, 4};
  EXPECT_EQ(error_of(line(two_turns("a")) + line(child)),
            "r.jsonl:2: turns[0]: differs from the parent's, with which it is shared");
}

TEST(Trees, AMeasurementOfASharedTurnMayBeInEitherRow) {
  OrderedJson child = two_turns("b");
  child["parent"] = "a";
  child["branch_turn"] = 1;
  child["entropy"] = {nullptr, 0.5, 0.25, nullptr};
  const RolloutFile file = read(line(two_turns("a")) + line(child));
  EXPECT_EQ(trajectories(file.groups)[0].column(Column::EntropyRollout)[1], 0.5);
  EXPECT_TRUE(std::isnan(trajectories(file.groups)[0].column(Column::EntropyRollout)[2]));
}

/// A change to the two-turn row, and the expected error.
struct Damage {
  const char* field;
  const char* value;
  const char* message;
};

class DamagedRow : public ::testing::TestWithParam<Damage> {};

TEST_P(DamagedRow, IsRefusedWithItsPlace) {
  OrderedJson json = two_turns("b");
  json[GetParam().field] = OrderedJson::parse(GetParam().value);
  EXPECT_THAT(error_of(line(two_turns("a")) + line(json)), HasSubstr(std::string("r.jsonl:2: ") + GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Fields, DamagedRow,
    ::testing::Values(
        Damage{"uid", "null", "misses the field uid"}, Damage{"score", "null", "misses the field score"},
        Damage{"score", "\"high\"", "score: expected a number, found \"high\""},
        Damage{"score", "1e308", "score: expected a number from -1e9 to 1e9, found 1e+308"},
        Damage{"turns", "[{\"start\": 0, \"end\": 4, \"reward\": -1e308}]",
               "turns[0]: reward: expected a number from -1e9"},
        Damage{"turns", "[{\"start\": 0, \"end\": 2, \"reward\": 1}, {\"start\": 2, \"end\": 4}]",
               "score: is 0.5, and the rewards of the turns add up to 1.0; expected the same"},
        Damage{"traj_id", "\"a\"", "traj_id: \"a\" appears twice in this group"},
        Damage{"token_ids", "[1, 2.5, 3, 4]", "token_ids[1]: expected a token id, found 2.5"},
        Damage{"token_ids", "[1, -2, 3, 4]", "token_ids[1]: expected a token id, found -2"},
        Damage{"token_ids", "[1, 3000000000, 3, 4]", "token_ids[1]: expected a token id, found 3000000000"},
        Damage{"token_ids", "7", "token_ids: expected a list of token ids, found 7"},
        Damage{"loss_mask", "[0, 1]", "loss_mask: has 2 entries for 4 tokens"},
        Damage{"loss_mask", "[0, 1, 2, 0]", "loss_mask[2]: expected 0 or 1, found 2"},
        Damage{"segment", "[\"think\"]", "segment: has 1 entries for 4 tokens"},
        Damage{"segment", "[0, 1, 1, 0]", "segment[0]: expected one of template | prompt"},
        Damage{"logp_old", "[0, 1, 1]", "logp_old: has 3 entries for 4 tokens"},
        Damage{"advantage", "[0, \"x\", 1, 0]", "advantage[1]: expected a number or null, found \"x\""},
        Damage{"outcome", "\"lost\"", "outcome: expected one of finished | out_of_turns"},
        Damage{"turns", "[]", "turns: expected a list of at least one turn"},
        Damage{"turns", "[3]", "turns[0]: expected an object, found 3"},
        Damage{"turns", "[{\"start\": 0}]", "turns[0]: misses the field end"},
        Damage{"turns", "[{\"start\": 0, \"end\": 2}]", "turns: cover 2 of 4 tokens"},
        Damage{"turns", "[{\"start\": 1, \"end\": 4}]", "turns[0]: covers [1, 4), expected to start at 0"},
        Damage{"turns", "[{\"start\": 0, \"end\": 9}]", "turns[0]: covers [0, 9), expected to start at 0"},
        Damage{"turns", "[{\"start\": 0, \"end\": 4, \"context\": \"odd\"}]",
               "turns[0]: context: expected one of growing | fresh"},
        Damage{"parent", "\"a\"", "misses the field branch_turn"},
        Damage{"seed", "-1", "seed: expected an integer in range, found -1"},
        Damage{"answer", "[1]", "answer: expected a string"},
        Damage{"measures", "{\"f1\": \"x\"}", "measures.f1: expected a number"},
        Damage{"seed", "\"18446744073709551616\"", "seed: expected an integer in range"},
        Damage{"version", "3", "version: row format 3 is newer than this program's 2"}));

TEST(DamagedRows, ASampledRangeWithAGapIsRefused) {
  OrderedJson json = row();
  json["loss_mask"] = {1, 0, 1, 0};
  json["turns"] = {{{"start", 0}, {"end", 4}}};
  EXPECT_EQ(error_of(line(json)), "r.jsonl:1: turns[0]: loss_mask has several runs of sampled tokens in one turn");
}

TEST(DamagedRows, AMissingParentIsNamed) {
  OrderedJson json = two_turns("b");
  json["parent"] = "nobody";
  json["branch_turn"] = 1;
  EXPECT_EQ(error_of(line(json)), "r.jsonl:1: parent: no earlier line of this group has the traj_id \"nobody\"");
  json["parent"] = "a";
  json["branch_turn"] = 2;
  EXPECT_THAT(error_of(line(two_turns("a")) + line(json)), HasSubstr("expected at most 1 turns shared"));
}

TEST(DamagedRows, AreAllReportedAtOnceUpToALimit) {
  OrderedJson bad = row("b");
  bad["score"] = "x";
  bad["seed"] = "y";
  const std::string message = error_of(line(bad) + "{\n" + line(bad));
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 4);
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "{\n";
  EXPECT_THAT(error_of(many), HasSubstr("stopped reading here"));
}

TEST(DamagedRows, ATruncatedLineSaysWhere) {
  const std::string whole = line(row());
  EXPECT_THAT(error_of(whole + whole.substr(0, 30)), StartsWith("r.jsonl:2: not JSON at byte 31: "));
}

TEST(DamagedRows, RandomDamageEndsInRowsOrAMessage) {
  RandomStream random(6);
  const auto groups = testing::random_groups(random, {.groups = 2, .max_members = 3, .columns = {Column::Value}});
  const std::string good = rollout_rows(groups, testing::random_credit(random, groups), decode);
  constexpr std::string_view kBytes = "{}[]\",:0123456789.-e ntf\n\\\xff";
  for (int trial = 0; trial < testing::trials(400); ++trial) {
    std::string text = good;
    for (std::uint64_t change = 0; change <= random.below(3); ++change) {
      const auto at = static_cast<std::size_t>(random.below(text.size()));
      if (random.chance(0.5)) {
        text[at] = random.pick(kBytes);
      } else {
        text.erase(at, 1 + random.below(30));
      }
    }
    const auto file = parse_rollout_rows(text, "r.jsonl");
    if (!file.ok()) {
      EXPECT_THAT(file.error().message, StartsWith("r.jsonl:"));
      continue;
    }
    for (const Group& group : file->groups)
      for (const Tree& tree : group.trees) EXPECT_THAT(violations(tree), IsEmpty());
  }
}

TEST(RolloutFile, ReadsFromAFileAndNamesAMissingOne) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / "carnot_rollout_file_test.jsonl";
  ASSERT_TRUE(write_file_atomically(path, line(row())).ok());
  EXPECT_TRUE(read_rollout_file(path).ok());
  std::filesystem::remove(path);
  EXPECT_THAT(read_rollout_file(path).error().message, HasSubstr("carnot_rollout_file_test.jsonl: cannot open"));
}

TEST(RolloutFile, AnEmptyFileHasNoGroups) { EXPECT_THAT(read("").groups, IsEmpty()); }

}  // namespace
}  // namespace carnot
