#include "carnot/core/config/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "carnot/core/base/file.h"
#include "carnot/core/base/random.h"
#include "testing/paths.h"

namespace carnot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

Document parsed(std::string_view text, const RecipeSource& source = {}) {
  auto document = Document::parse(text, "r.yaml", source);
  EXPECT_TRUE(document.ok()) << (document.ok() ? "" : document.error().message);
  return document.ok() ? *document : Document();
}

std::string error_of(std::string_view text, const RecipeSource& source = {}) {
  const auto document = Document::parse(text, "r.yaml", source);
  return document.ok() ? "no error" : document.error().message;
}

std::string value_of(const Document& document, std::string_view key) {
  const Setting* setting = document.find(key);
  return setting == nullptr ? "not set" : setting->value.shown();
}

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

TEST(Document, KnowsEveryValueAndItsPlace) {
  const Document document = parsed("seed: 3\nenv:\n  name: sokoban\n  size: [6, 7]\n");
  EXPECT_EQ(document.find("seed")->shown(), "r.yaml:1:1: seed");
  EXPECT_EQ(document.find("env.size")->shown(), "r.yaml:4:3: env.size");
  EXPECT_EQ(value_of(document, "env.size"), "[6, 7]");
  EXPECT_EQ(value_of(document, "env.missing"), "not set");
}

TEST(Document, TakesDottedKeysAndWindowsLineEnds) {
  const Document document = parsed("env.name: sokoban\r\nenv.size: 6\r\n");
  EXPECT_EQ(value_of(document, "env.name"), "sokoban");
  EXPECT_EQ(value_of(document, "env.size"), "6");
}

TEST(Document, TakesQuotesAndAByteOrderMark) {
  const Document document = parsed(
      "\xef\xbb\xbf"
      "a: \"x \\\" y\"\nb: 'it''s'\nc: don't\n");
  EXPECT_EQ(document.find("a")->value.items[0].text, "x \" y");
  EXPECT_EQ(document.find("b")->value.items[0].text, "it's");
  EXPECT_EQ(document.find("c")->value.items[0].text, "don't");
}

TEST(Document, AnEmptyRecipeSetsNothing) {
  EXPECT_EQ(parsed("# only words\n").num_written(), 0);
  EXPECT_EQ(parsed("seed: 1\nenv: {name: a, size: 2}\n", {.overrides = {"x=1"}}).num_written(), 3);
  EXPECT_THAT(parsed("").settings(), IsEmpty());
  EXPECT_THAT(parsed("# nothing yet\n").settings(), IsEmpty());
}

TEST(Document, RemembersWhatWasQuoted) {
  EXPECT_TRUE(parsed("a: '1'").find("a")->value.items[0].quoted);
  EXPECT_FALSE(parsed("a: 1").find("a")->value.items[0].quoted);
}

TEST(Overrides, WinOverTheRecipe) {
  const Document document = parsed("env:\n  size: 6\n", {.overrides = {"env.size=8", "stops=[a, b]", "note="}});
  EXPECT_EQ(value_of(document, "env.size"), "8");
  EXPECT_EQ(document.find("env.size")->shown(), "command line: env.size");
  EXPECT_EQ(value_of(document, "stops"), "[a, b]");
  EXPECT_EQ(value_of(document, "note"), "\"\"");
}

TEST(Overrides, MayHoldEqualsSignsAndSections) {
  const Document document = parsed("", {.overrides = {"note=a=b", "env={size: 3, name: maze}"}});
  EXPECT_EQ(value_of(document, "note"), "a=b");
  EXPECT_EQ(value_of(document, "env.size"), "3");
}

TEST(Overrides, SayWhatIsWrongWithThem) {
  const Document document = parsed("", {.overrides = {"steps", "=3", "stops=[1", "extends=base.yaml", "a=&x 1"}});
  EXPECT_THAT(
      document.problems(),
      ElementsAre("command line: expected key=value, found \"steps\"", "command line: expected key=value, found \"=3\"",
                  "command line: stops: a list opens with [ and does not end with ]",
                  "command line: extends is only allowed in a recipe", HasSubstr("anchors")));
}

TEST(Shorthand, ASectionWrittenAsAWordIsItsName) {
  EXPECT_EQ(value_of(parsed("method: grpo + aem\n"), "method.name"), "grpo + aem");
  EXPECT_EQ(value_of(parsed("method:\n  name: ppo\n", {.overrides = {"method=grpo"}}), "method.name"), "grpo");
  EXPECT_EQ(value_of(parsed("method: ppo\n", {.overrides = {"method.name=grpo"}}), "method.name"), "grpo");
}

TEST(Shorthand, KeepsTheOtherKeysOfTheSection) {
  const Document document = parsed("method:\n  name: ppo\n  gae:\n    lambda: 0.9\n", {.overrides = {"method=grpo"}});
  EXPECT_EQ(value_of(document, "method.gae.lambda"), "0.9");
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

TEST(Overrides, TheLastValueOfAKeyWins) {
  const Document document = parsed("a: 0\n", {.overrides = {"a=1", "a=2"}});
  EXPECT_THAT(document.problems(), IsEmpty());
  EXPECT_EQ(value_of(document, "a"), "2");
  EXPECT_EQ(value_of(parsed("", {.overrides = {"rollout.group_size=4", "actor_rollout_ref.rollout.n=8"}}),
                     "rollout.group_size"),
            "8");
}

TEST(Contradictions, InARecipeAreProblems) {
  EXPECT_THAT(parsed("method: grpo\nmethod.name: ppo\n").problems(), ElementsAre(HasSubstr("contradicts")));
}

struct BadYaml {
  const char* text;
  const char* message;
};

class Refused : public ::testing::TestWithParam<BadYaml> {};

TEST_P(Refused, WithOneMessageThatSaysWhere) {
  const std::string message = error_of(GetParam().text);
  EXPECT_THAT(message, StartsWith(GetParam().message)) << GetParam().text;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(
    Yaml, Refused,
    ::testing::Values(
        BadYaml{"a: 1\nb: [1, 2\nc: 3\n", "r.yaml:3:2: not valid YAML: "},
        BadYaml{"a: \"open\n", "r.yaml:1:4: a quote opens here and does not close"},
        BadYaml{"é: 1\na: 'it''s\n", "r.yaml:2:4: a quote opens here and does not close"},
        BadYaml{"a: \xff\n", "r.yaml:1:4: not UTF-8 text"}, BadYaml{"a: \xcb", "r.yaml:1:4: not UTF-8 text"},
        BadYaml{"a: 1\n b: 2\n", "r.yaml:2:3: not valid YAML: "},
        BadYaml{"a:\n\tb: 1\n", "r.yaml:2:1: indented with a tab"},
        BadYaml{"a: 1\nb: 2\na: 1\n", "r.yaml:3:1: key \"a\" is set a second time; first on line 1"},
        BadYaml{"a: &x 1\n", "r.yaml:1:4: YAML anchors"}, BadYaml{"a: &x [1, 2]\nb: *x\n", "r.yaml:1:4: YAML anchors"},
        BadYaml{"a: *x\n", "r.yaml:1:4: "}, BadYaml{"<<: {a: 1}\n", "r.yaml:1:1: YAML merge keys"},
        BadYaml{"a: !!int 1\n", "r.yaml:1:4: YAML tags"}, BadYaml{"a: \"\\N\"\n", "r.yaml:1:4: the escapes"},
        BadYaml{"a: [[1], [2]]\n", "r.yaml:1:5: a list inside a list"},
        BadYaml{"a:\n  - b: 1\n", "r.yaml:2:5: a section inside a list"},
        BadYaml{"a: [1, ~]\n", "r.yaml:1:8: a list has an empty entry"},
        BadYaml{"- a\n", "r.yaml:1:1: the recipe is a list"},
        BadYaml{"just words\n", "r.yaml:1:1: the recipe is a single value"},
        BadYaml{"? [a, b]\n: 1\n", "r.yaml:1:3: a key is a list"},
        BadYaml{"? {a: b}\n: 1\n", "r.yaml:1:3: a key is a section"}, BadYaml{"~: 1\n", "r.yaml:1:1: a key is empty"},
        BadYaml{"\"\": 1\n", "r.yaml:1:1: a key is empty"},
        BadYaml{"a: 1\n---\nb: 2\n", "r.yaml:1:1: several YAML documents"}));

TEST(Refused, DeepNestingWhereverItComesFrom) {
  EXPECT_THAT(error_of("a: " + std::string(100000, '[')), HasSubstr("nested too deep"));
  std::string text;
  for (int depth = 0; depth < 40; ++depth) text += std::string(depth, ' ') + "k:\n";
  EXPECT_THAT(error_of(text), StartsWith("r.yaml:17:"));
  EXPECT_THAT(error_of(std::string(5000, '-') + " a"), StartsWith("r.yaml:"));
  std::string dashes;
  for (int i = 0; i < 20000; ++i) dashes += "- ";
  EXPECT_THAT(error_of(dashes), StartsWith("r.yaml:"));
}

TEST(Refused, WhatIsNotText) {
  EXPECT_THAT(error_of(std::string("a: 1\n\0", 6)), StartsWith("r.yaml:2:1: a zero byte"));
  EXPECT_THAT(error_of("a: " + std::string(2 << 20, 'x')), HasSubstr("larger than 1 MiB"));
}

class Extends : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("carnot_extends_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_ / "inner");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) {
    EXPECT_TRUE(write_file_atomically(folder_ / name, text).ok());
    return (folder_ / name).string();
  }

  std::filesystem::path folder_;
};

TEST_F(Extends, AppliesTheRecipeOverItsBase) {
  write("base.yaml", "seed: 1\nenv:\n  name: maze\n  size: 6\n");
  const auto path = write("inner/own.yaml", "extends: ../base.yaml\nenv:\n  size: 9\n");
  const auto document = Document::load(path);
  ASSERT_TRUE(document.ok()) << document.error().message;
  EXPECT_EQ(value_of(*document, "env.size"), "9");
  EXPECT_EQ(value_of(*document, "env.name"), "maze");
  EXPECT_THAT(document->find("seed")->place, HasSubstr("base.yaml:1:1"));
  EXPECT_EQ(value_of(*document, "extends"), "not set");
}

TEST_F(Extends, NamesAMissingBaseAndWhoAsked) {
  const auto path = write("own.yaml", "seed: 1\nextends: none.yaml\n");
  const auto document = Document::load(path);
  ASSERT_FALSE(document.ok());
  EXPECT_THAT(document.error().message, StartsWith(path + ":2: extends: "));
  EXPECT_THAT(document.error().message, HasSubstr("No such file"));
}

TEST_F(Extends, NoticesACycle) {
  const auto path = write("a.yaml", "extends: b.yaml\n");
  write("b.yaml", "extends: a.yaml\n");
  const auto document = Document::load(path);
  ASSERT_FALSE(document.ok());
  EXPECT_THAT(document.error().message, HasSubstr("extends itself"));
}

TEST_F(Extends, AMissingRecipeIsNamed) {
  const auto document = Document::load(folder_ / "none.yaml");
  ASSERT_FALSE(document.ok());
  EXPECT_THAT(document.error().message, HasSubstr("none.yaml: cannot open: No such file or directory"));
}

TEST(Damage, NeverEndsInAnythingButAValueOrAMessage) {
  const std::string good =
      "seed: 3\nenv:\n  name: 'a b'\n  sizes: [1, 2.5, -3e4]\nmethod: grpo + aem\nnote: |\n  text\n";
  constexpr std::string_view kBytes = ":-[]{}&*!|>'\"%@`#?, \n\t~ax1\\\xff";
  RandomStream random(4);
  for (int trial = 0; trial < 3000; ++trial) {
    std::string text = good;
    for (std::uint64_t change = 0; change <= random.below(4); ++change) {
      const auto at = static_cast<std::size_t>(random.below(text.size()));
      switch (random.below(3)) {
        case 0: text[at] = random.pick(kBytes); break;
        case 1: text.insert(at, 1, random.pick(kBytes)); break;
        default: text.erase(at, 1 + random.below(5)); break;
      }
      if (text.empty()) text = "a";
    }
    const auto document = Document::parse(text, "r.yaml");
    if (!document.ok()) {
      EXPECT_THAT(document.error().message, StartsWith("r.yaml:")) << text;
    }
  }
}

}  // namespace
}  // namespace carnot
