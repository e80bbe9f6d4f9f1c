// Keys of other programs and of earlier releases in recipes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>

#include "carnot/core/base/file.h"
#include "testing/parsed_recipe.h"
#include "testing/paths.h"

namespace carnot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::parsed;
using ::testing::StartsWith;
using testing::value_of;

std::string alias_meaning(const Alias& alias) {
  std::string text;
  for (const std::string_view key : alias.ours) text += (text.empty() ? "`" : ", `") + std::string(key) + "`";
  if (!alias.divides.empty()) text += " = `" + std::string(alias.divides) + "` / theirs";
  if (!alias.appends.empty()) text += ", after `" + std::string(alias.appends) + "`";
  if (!alias.environment.empty()) text += " of `env: " + std::string(alias.environment) + "`";
  if (!alias.note.empty()) text += (text.empty() ? "ignored: " : "; elsewhere ignored: ") + std::string(alias.note);
  if (!alias.advice.empty()) text = "refused: " + std::string(alias.advice);
  for (const auto& [theirs, ours] : alias.words)
    text += "; `" + std::string(theirs) + "` " + (ours.empty() ? "is so here" : "is `" + std::string(ours) + "`");
  return text;
}

/// As docs/coming_from_verl.md and docs/coming_from_trl.md have it.
std::string alias_table(const std::string& program, std::span<const Alias> aliases) {
  std::string table = "| " + program + " | Carnot |\n|---|---|\n";
  for (const Alias& alias : aliases)
    table += "| `" + std::string(alias.theirs) + "` | " + alias_meaning(alias) + " |\n";
  return table;
}

TEST(Aliases, SetCarnotsKeysAndKeepTheUsersName) {
  const Document document = parsed("actor_rollout_ref:\n  rollout:\n    n: 8\n  actor:\n    clip_ratio: 0.3\n");
  EXPECT_EQ(value_of(document, "rollout.group_size"), "8");
  EXPECT_EQ(value_of(document, "objective.clip_low"), "0.3");
  EXPECT_EQ(value_of(document, "objective.clip_high"), "0.3");
  EXPECT_EQ(document.find("rollout.group_size")->shown(), "r.yaml:3:5: actor_rollout_ref.rollout.n");
}

TEST(Aliases, TranslateTheirWords) {
  const Document document = parsed("actor_rollout_ref.actor.loss_agg_mode: seq-mean-token-sum\n");
  EXPECT_EQ(value_of(document, "objective.reduction"), "sequence_mean_token_sum");
}

TEST(Aliases, TheSameSettingTwiceWithDifferentValuesIsAProblem) {
  const Document document = parsed("rollout:\n  group_size: 4\nactor_rollout_ref:\n  rollout:\n    n: 8\n");
  EXPECT_THAT(document.problems(), ElementsAre("r.yaml:5:5: actor_rollout_ref.rollout.n: 8 contradicts "
                                               "rollout.group_size: 4 (r.yaml:2:3); both set rollout.group_size"));
}

TEST(Aliases, TheSameSettingTwiceWithTheSameValueIsFine) {
  EXPECT_THAT(parsed("rollout.temperature: 1\nactor_rollout_ref.rollout.temperature: 1.0\n").problems(), IsEmpty());
  EXPECT_THAT(parsed("rollout.group_size: 4\n", {.overrides = {"actor_rollout_ref.rollout.n=8"}}).problems(),
              IsEmpty());
}

TEST(Aliases, AdviseWhereThereIsNoCounterpart) {
  EXPECT_THAT(parsed("reward_model.enable: true\n").problems(),
              ElementsAre(StartsWith("r.yaml:1:1: reward_model.enable: true has no counterpart here; rewards come ")));
}

TEST(Aliases, TakeWhatHoldsHereAnyway) {
  const Document document = parsed(
      "algorithm.filter_groups.enable: False\nactor_rollout_ref.actor.use_kl_loss: True\n"
      "actor_rollout_ref.actor.policy_loss.loss_mode: vanilla\ntrainer.total_training_steps: null\n");
  EXPECT_THAT(document.problems(), IsEmpty());
  EXPECT_THAT(document.settings(), IsEmpty());
}

TEST(Aliases, ABoolThatIsOffSetsItsCoefficient) {
  EXPECT_EQ(value_of(parsed("actor_rollout_ref.actor.use_kl_loss: False\n"), "objective.kl_coefficient"), "0");
}

TEST(Aliases, ABoolThatIsOffWinsOverItsCoefficientWithANote) {
  const Document verl = parsed("algorithm: {use_kl_in_reward: False, kl_ctrl: {kl_coef: 0.001}}\n");
  EXPECT_THAT(verl.problems(), IsEmpty());
  EXPECT_EQ(value_of(verl, "objective.kl_in_reward"), "0");
  EXPECT_THAT(verl.notes(), ElementsAre("r.yaml:1:48: algorithm.kl_ctrl.kl_coef: is ignored, for "
                                        "algorithm.use_kl_in_reward is off (r.yaml:1:13)"));
  const Document line = parsed(
      "", {.overrides = {"actor_rollout_ref.actor.kl_loss_coef=0.001", "actor_rollout_ref.actor.use_kl_loss=False"}});
  EXPECT_EQ(value_of(line, "objective.kl_coefficient"), "0");
  EXPECT_THAT(line.notes(), ElementsAre(HasSubstr("kl_loss_coef: is ignored")));
  EXPECT_EQ(value_of(parsed("algorithm: {use_kl_in_reward: True, kl_ctrl.kl_coef: 0.001}\n"), "objective.kl_in_reward"),
            "0.001");
}

TEST(Aliases, TheUpperBoundOfTheClipIsTheLowerOneUnlessItIsGiven) {
  for (const std::string text : {"epsilon: 0.1\nepsilon_high: 0.3\n", "epsilon_high: 0.3\nepsilon: 0.1\n"}) {
    const Document document = parsed(text);
    EXPECT_THAT(document.problems(), IsEmpty());
    EXPECT_THAT(document.notes(), IsEmpty());
    EXPECT_EQ(value_of(document, "objective.clip_low"), "0.1");
    EXPECT_EQ(value_of(document, "objective.clip_high"), "0.3");
  }
  EXPECT_EQ(value_of(parsed("epsilon: 0.1\n"), "objective.clip_high"), "0.1");
}

TEST(Aliases, OfOneEnvironmentsKeysNameIt) {
  EXPECT_THAT(parsed("data.train_files: a.jsonl\n").problems(),
              ElementsAre("r.yaml:1:1: data.train_files: set env.name: dataset"));
  EXPECT_THAT(parsed("data.train_files: a.jsonl\nenv: gsm8k\n").problems(),
              ElementsAre("r.yaml:1:1: data.train_files: set env.name: dataset; this recipe has gsm8k"));
  const Document dataset = parsed("data: {train_files: a.jsonl, prompt_key: query}\nenv: dataset\n");
  EXPECT_THAT(dataset.problems(), IsEmpty());
  EXPECT_EQ(value_of(dataset, "env.train_file"), "a.jsonl");
  EXPECT_EQ(value_of(dataset, "env.question"), "query");
  const Document other = parsed("data.prompt_key: query\nenv: gsm8k\n");
  EXPECT_EQ(value_of(other, "env.question"), "not set");
  EXPECT_THAT(other.notes(), ElementsAre(HasSubstr("data.prompt_key: has no meaning here and is ignored")));
}

TEST(Aliases, VerlsRewardFileAndFunctionAreOneKey) {
  const std::string name = "custom_reward_function.name: judge\n", path = "custom_reward_function.path: my.py\n";
  EXPECT_EQ(value_of(parsed("env: dataset\n" + name + path), "env.reward"), "my.py:judge");
  EXPECT_EQ(value_of(parsed("env: dataset\n" + path), "env.reward"), "my.py");
  EXPECT_THAT(parsed("env: dataset\n" + name).problems(),
              ElementsAre("r.yaml:2:1: custom_reward_function.name: belongs to env.reward, which is not set"));
}

TEST(Aliases, PassOverWhatHasNoMeaningAndSayWhy) {
  const Document document =
      parsed("trainer: {nnodes: 2, n_gpus_per_node: 8}\nactor_rollout_ref.actor.fsdp_config.param_offload: true\n");
  EXPECT_THAT(document.problems(), IsEmpty());
  EXPECT_THAT(document.settings(), IsEmpty());
  EXPECT_THAT(document.notes(),
              ElementsAre(StartsWith("r.yaml:1:11: trainer.nnodes: has no meaning here and is ignored: "),
                          HasSubstr("trainer.n_gpus_per_node"), HasSubstr("fsdp_config.param_offload")));
}

TEST(Aliases, CountMiniBatchesWhereVerlHasTheirSize) {
  const std::string size = "actor_rollout_ref.actor.ppo_mini_batch_size: 64\n";
  EXPECT_EQ(value_of(parsed(size + "data.train_batch_size: 256\n"), "train.mini_batches"), "4");
  EXPECT_EQ(value_of(parsed(size + "train.groups_per_step: 256\n", {.overrides = {"data.train_batch_size=64"}}),
                     "train.mini_batches"),
            "1");
  EXPECT_EQ(value_of(parsed(size + "train.groups_per_step: 256\n", {.overrides = {"train.mini_batches=2"}}),
                     "train.mini_batches"),
            "2");
  EXPECT_THAT(
      parsed(size + "data.train_batch_size: 100\n").problems(),
      ElementsAre(
          "r.yaml:1:1: actor_rollout_ref.actor.ppo_mini_batch_size: expected a divisor of train.groups_per_step "
          "(100), found 64"));
  EXPECT_THAT(parsed(size).problems(), ElementsAre(HasSubstr("must be set too")));
}

TEST(Aliases, EveryRowSetsSomethingOrSaysWhyNot) {
  for (const Alias& alias : all_aliases()) {
    const bool is_noted = !alias.note.empty() && alias.environment.empty();
    const int ends = (alias.ours.empty() ? 0 : 1) + (alias.advice.empty() ? 0 : 1) + (is_noted ? 1 : 0);
    EXPECT_EQ(ends, 1) << alias.theirs;
    EXPECT_EQ(find_alias(all_aliases(), alias.theirs), &alias) << "is listed twice";
  }
}

TEST(Aliases, AFormerKeySetsItsSuccessorWithANote) {
  const Document document = Document::parse("train: {groups: 8}\n", "r.yaml", {}).value();
  ASSERT_NE(document.find("train.groups_per_step"), nullptr);
  EXPECT_EQ(document.find("train.groups_per_step")->value.shown(), "8");
  EXPECT_EQ(document.find("train.groups"), nullptr);
  EXPECT_THAT(document.notes(), ElementsAre("r.yaml:1:9: train.groups is now train.groups_per_step; the old name works "
                                            "in this release only"));
}

TEST(Aliases, TheDocumentationHasTheTables) {
  const auto page = [](const std::string& name) { return read_file(source_path("docs/coming_from_" + name)).value(); };
  EXPECT_THAT(page("verl.md"), HasSubstr(alias_table("verl", verl_aliases())));
  EXPECT_THAT(page("trl.md"), HasSubstr(alias_table("TRL", trl_aliases())));
  EXPECT_THAT(read_file(source_path("docs/recipe_keys.md")).value(), HasSubstr(alias_table("former", former_keys())));
}

}  // namespace
}  // namespace carnot
