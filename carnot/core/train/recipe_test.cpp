#include "carnot/core/train/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "carnot/core/base/file.h"
#include "carnot/core/config/aliases.h"
#include "testing/paths.h"

namespace carnot {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Recipe recipe_of(const std::vector<std::string>& settings) {
  return Recipe::parse("seed: 0\n", "recipe.yaml", settings).value();
}

std::string refusal(const std::vector<std::string>& settings) {
  const auto recipe = Recipe::parse("seed: 0\n", "recipe.yaml", settings);
  return recipe ? "" : recipe.error().message;
}

TEST(Recipe, KeepsTheWarningsOfTheParts) {
  EXPECT_THAT(recipe_of({"method=starpo_s + aent"}).method.warnings, ElementsAre(HasSubstr("replaces")));
  EXPECT_THAT(recipe_of({"method=grpo + aem + gigpo"}).method.warnings, ElementsAre(HasSubstr("step_group")));
  EXPECT_THAT(recipe_of({"method=grpo + aem", "method.gspo.epsilon=1", "objective.kl_estimator=k1"}).method.warnings,
              ElementsAre(HasSubstr("k1"), HasSubstr("method.gspo: not used")));
  EXPECT_THAT(recipe_of({"method=grpo + aem"}).method.warnings, IsEmpty());
}

TEST(Recipe, RefusesKeysThatNothingReadsWithTheReason) {
  EXPECT_THAT(refusal({"method=grpo + gigpo", "method.gigpo.statistics=rows"}),
              AllOf(HasSubstr("command line: method.gigpo.statistics: has no effect: the base is grpo"),
                    ::testing::Not(HasSubstr("unknown key"))));
  EXPECT_THAT(refusal({"method=rloo + aepo", "method.aepo.divide_by_std=true"}), HasSubstr("the base is rloo"));
  EXPECT_THAT(refusal({"method=grpo + a2tgpo", "method.a2tgpo.reward.scaling=mean"}), HasSubstr("the base is grpo"));
  EXPECT_THAT(refusal({"method=ppo", "method.ppo.turn_gamma=0.5"}), HasSubstr("has no effect: bilevel is false"));
  EXPECT_THAT(refusal({"method=grpo", "method.grpo.reward.per_turn=true"}), HasSubstr("total reward"));
  EXPECT_THAT(refusal({"method=grpo", "filter.keep_share=0.5"}), HasSubstr("filter.name is none"));
}

TEST(Recipe, RefusesACriticsLossWithoutValueTargets) {
  EXPECT_THAT(refusal({"method=grpo", "objective.value_coefficient=1"}),
              HasSubstr("command line: objective.value_coefficient: the critic's loss needs value targets"));
  EXPECT_EQ(refusal({"method=ppo", "objective.value_coefficient=0.5"}), "");
}

TEST(Recipe, LetsABoolLeaveOtherKeysAtTheirDefaults) {
  EXPECT_EQ(refusal({"method=aepo", "method.aepo.branching=false", "method.aepo.branch.penalty=0.2"}), "");
  EXPECT_THAT(refusal({"method=aepo", "method.aepo.branching=false", "method.aepo.branch.penalty=0.3"}),
              HasSubstr("has no effect: branching is false"));
  EXPECT_EQ(refusal({"method=grpo + aem", "method.aem.lambda=0", "method.aem.gate=0.3"}), "");
}

TEST(Recipe, AcceptsAFilterWithAnyBase) {
  EXPECT_EQ(recipe_of({"method=grpo"}).method.filter.name, "none");
  const Method actfocus =
      recipe_of({"method=grpo + actfocus", "filter=keep_most_varied", "filter.keep_share=0.25"}).method;
  EXPECT_EQ(actfocus.filter.name, "keep_most_varied");
  EXPECT_EQ(actfocus.filter.keep_share, 0.25);
  const Method rejection = recipe_of({"method=rloo + aem", "filter=drop_zero_variance", "filter.max_refills=1"}).method;
  EXPECT_EQ(rejection.filter.name, "drop_zero_variance");
  EXPECT_EQ(rejection.filter.max_refills, 1);
}

TEST(Recipe, TakesTheMethodsFilterAsTheDefaultOfItsOwn) {
  EXPECT_EQ(recipe_of({"method=dapo"}).method.filter.max_refills, 10);
  const Method fewer = recipe_of({"method=dapo", "filter.max_refills=2"}).method;
  EXPECT_EQ(fewer.filter.name, "drop_zero_variance");
  EXPECT_EQ(fewer.filter.max_refills, 2);
  EXPECT_EQ(recipe_of({"method=starpo_s", "filter=none"}).method.filter.name, "none");
  EXPECT_THAT(refusal({"method=dapo", "filter=drop_all"}), HasSubstr("expected one of none | drop_zero_variance"));
}

TEST(Recipe, ReadsBackWhatItPrintsForEveryMethodInEveryRole) {
  for (const MethodEntry& entry : methods())
    for (const std::string& composition :
         {std::string(entry.name), "rloo + " + std::string(entry.name), "ppo + " + std::string(entry.name)}) {
      auto recipe = Recipe::parse("seed: 0\n", "recipe.yaml", {"method=" + composition});
      if (!recipe) continue;
      for (const PresetEntry& preset : entry.presets()) {
        const std::string setting =
            "method." + std::string(entry.name) + ".preset=" + std::string(name_of(preset.preset));
        auto with_preset = Recipe::parse("seed: 0\n", "recipe.yaml", {"method=" + composition, setting});
        if (!with_preset) continue;  // a preset that only a base reads
        auto again = Recipe::parse(with_preset->to_yaml(), "config.yaml", {});
        ASSERT_TRUE(again) << composition << "\n" << again.error().message;
        EXPECT_EQ(again->to_yaml(), with_preset->to_yaml());
      }
    }
}

TEST(Recipe, ShowsWhatEachPresetSets) {
  const FieldTable table = recipe_of({"method=grpo"}).table();
  for (const FieldRow& row : table.rows())
    if (row.key == "method.grpo.preset") {
      EXPECT_EQ(row.value, "carnot");
      EXPECT_EQ(row.accepts, "carnot | paper | code");
      EXPECT_THAT(row.help, HasSubstr("paper: sequence_mean_token_mean"));
      return;
    }
  FAIL() << "method.grpo.preset is not shown";
}

TEST(Recipe, OfAMethodThatComparesAGroupsTrajectoriesTrainsGroupsOfTwoOrMore) {
  const auto problem = [](const std::string& method, const std::string& setting) {
    const Status status = recipe_of({"method=" + method, "rollout.group_size=1", setting}).check_trainable();
    return status ? "" : status.error().message;
  };
  for (const std::string method : {"grpo", "dr_grpo", "rloo", "dapo", "grpo + aem"})
    EXPECT_THAT(problem(method, "seed=1"), HasSubstr("every advantage would be 0; expected at least 2")) << method;
  EXPECT_EQ(problem("ppo", "seed=1"), "");
  EXPECT_EQ(problem("grpo", "method.grpo.preset=code"), "") << "keeps the reward of a group of one";
  EXPECT_EQ(problem("grpo", "train.steps=0"), "");
  EXPECT_TRUE(recipe_of({"method=grpo", "rollout.group_size=2"}).check_trainable().ok());
}

TEST(Recipe, WarnsOfMoreUpdatesThanGroups) {
  EXPECT_THAT(recipe_of({"method=ppo", "train.groups_per_step=4", "train.mini_batches=5"}).method.warnings,
              ElementsAre(HasSubstr("train.mini_batches: 5, but a group is never split and a step has 4 of them")));
  EXPECT_THAT(recipe_of({"method=ppo", "train.groups_per_step=4", "train.mini_batches=4"}).method.warnings, IsEmpty());
}

TEST(Recipe, RefusesGreedyTrainingAndSaysWhere0IsMeant) {
  EXPECT_THAT(refusal({"rollout.temperature=0"}),
              AllOf(HasSubstr("command line: rollout.temperature: training learns from differences"),
                    HasSubstr("eval.temperature may be 0")));
  EXPECT_THAT(refusal({"rollout.temperature=1e-300"}), HasSubstr("rollout.temperature"));
  EXPECT_THAT(refusal({"eval.temperature=1e-300"}), HasSubstr("eval.temperature"));
  EXPECT_EQ(refusal({"eval.temperature=0"}), "");
}

TEST(Recipe, WeighsWhatOlderWeightsSampledInAsynchronousMode) {
  const std::string workers = "rollout.workers=nats://127.0.0.1:4222", bound = "rollout.max_staleness=2";
  EXPECT_THAT(refusal({bound}), HasSubstr("rollout.max_staleness: in one process rollouts and updates take turns"));
  EXPECT_THAT(refusal({workers, bound, "rollout.other_kernels=recompute", "rollout.old_log_probs=rollout"}),
              HasSubstr("rollout.other_kernels: the weights that sampled may be gone"));
  EXPECT_THAT(refusal({workers, "rollout.in_flight_updates=true"}), HasSubstr("rollout.max_staleness is 0"));
  EXPECT_EQ(refusal({workers, bound, "rollout.in_flight_updates=true"}), "");
  EXPECT_EQ(recipe_of({workers}).method.objective.importance_cap, 0);
  EXPECT_EQ(recipe_of({workers, bound}).method.objective.importance_cap, 5);
  const Method coupled = recipe_of({workers, bound, "rollout.old_log_probs=rollout"}).method;
  EXPECT_EQ(coupled.objective.importance_cap, 0);
  EXPECT_THAT(coupled.warnings, ::testing::Contains(HasSubstr("auto gives the decoupled objective")));
  EXPECT_EQ(recipe_of({workers, bound, "objective.importance_cap=2"}).method.objective.importance_cap, 2);
  Recipe off = recipe_of({workers, bound, "objective.importance_cap=0"});
  EXPECT_EQ(off.method.objective.importance_cap, 0);
  EXPECT_EQ(Recipe::parse(off.to_yaml(), "config.yaml", {})->method.objective.importance_cap, 0);
}

TEST(Recipe, RefusesWhatALoadedModelDecides) {
  EXPECT_THAT(refusal({"model.path=/models/a", "model.hidden_size=96"}),
              HasSubstr("command line: model.hidden_size: has no effect: model.path decides on it"));
  EXPECT_THAT(refusal({"model.path=/models/a", "model.init_std=0.3"}), HasSubstr("model.init_std: has no effect"));
  EXPECT_THAT(refusal({"tokenizer.path=/models/a", "tokenizer.vocab_size=900"}), HasSubstr("tokenizer.path decides"));
  EXPECT_EQ(refusal({"model.hidden_size=96", "tokenizer.vocab_size=900"}), "");
  Recipe loaded = recipe_of({"model.path=/models/a"});
  EXPECT_TRUE(Recipe::parse(loaded.to_yaml(), "config.yaml", {})) << "a run's own configuration reads back";
}

/// The lines of `recipe` that were ignored, without their places.
std::vector<std::string> keys_passed_over(const Recipe& recipe) {
  std::vector<std::string> keys;
  for (const std::string& line : recipe.passed_over) {
    const std::size_t key = line.find(": ") + 2;
    keys.push_back(line.substr(key, line.find(": ", key) - key));
  }
  return keys;
}

TEST(RecordedRecipe, OfTheFirstVersionIgnoresWhatHadNoEffect) {
  const std::string path = source_path("tests/golden/first_version/unread.yaml");
  const auto written = Recipe::load(path, {});
  ASSERT_FALSE(written) << "a user's recipe with such keys is refused";
  EXPECT_THAT(written.error().message, HasSubstr("model.hidden_size: has no effect: model.path decides on it"));
  EXPECT_THAT(written.error().message, HasSubstr("method.gigpo.statistics: has no effect: the base is grpo"));

  auto recorded = Recipe::load_recorded(path, {});
  ASSERT_TRUE(recorded) << recorded.error().message;
  EXPECT_THAT(keys_passed_over(*recorded),
              ::testing::IsSupersetOf({"model.hidden_size", "model.init_std", "tokenizer.vocab_size",
                                       "method.gigpo.statistics", "method.grpo.reward.per_turn"}));
  EXPECT_THAT(recorded->passed_over, Contains(HasSubstr("unread.yaml:12:3: model.hidden_size: has no effect: ")));
  EXPECT_EQ(recorded->method.name, "grpo + gigpo");
  EXPECT_EQ(recorded->model.path, "/models/small");
  const std::string today = recorded->to_yaml();
  EXPECT_TRUE(Recipe::parse(today, "config.yaml", {})) << "what the run writes when it resumes";
  EXPECT_THAT(today, ::testing::Not(HasSubstr("hidden_size: 96")));
}

TEST(RecordedRecipe, StillRefusesOverridesWithoutEffect) {
  const std::string path = source_path("tests/golden/first_version/unread.yaml");
  const auto refused = Recipe::load_recorded(path, {"model.hidden_size=64"});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("command line: model.hidden_size: has no effect"));
  EXPECT_TRUE(Recipe::load_recorded(path, {"eval.tasks=7"}));
}

TEST(RecordedRecipe, OfTheFirstVersionReadsPaperAsTodaysCarnot) {
  const std::string path = source_path("tests/golden/first_version/arpo.yaml");
  auto recorded = Recipe::load_recorded(path, {});
  ASSERT_TRUE(recorded) << recorded.error().message;
  EXPECT_EQ(recorded->to_yaml(),
            recipe_of({"method=arpo", "rollout.old_log_probs=recompute", "dtype=float32"}).to_yaml())
      << "the default, then and now";
  EXPECT_THAT(Recipe::load_recorded(path, {"method.arpo.preset=paper"})->to_yaml(), HasSubstr("preset: paper"));

  const std::string text = read_file(path).value();
  const auto newer = std::filesystem::temp_directory_path() / "carnot_newer_config.yaml";
  ASSERT_TRUE(write_file_atomically(newer, "resume_changes: refuse\n" + text));
  EXPECT_THAT(Recipe::load_recorded(newer, {})->to_yaml(), HasSubstr("preset: paper"));
  std::filesystem::remove(newer);
}

TEST(Recipe, AFolderNamedOnTheCommandLineWinsOverTheRecipesShape) {
  const std::string text = "model: {hidden_size: 96, init_std: 0.3}\ntokenizer: {vocab_size: 900}\n";
  EXPECT_FALSE(Recipe::parse("model: {hidden_size: 96, path: /models/a}", "both.yaml", {}));
  auto recipe = Recipe::parse(text, "shaped.yaml", {"model.path=/models/a"});
  ASSERT_TRUE(recipe) << recipe.error().message;
  const auto again = Recipe::parse(recipe->to_yaml(), "config.yaml", {});
  EXPECT_TRUE(again) << "a run's own configuration reads back";
}

TEST(Recipe, RefusesAnEmptyFile) {
  const auto path = std::filesystem::temp_directory_path() / "carnot_empty_recipe.yaml";
  ASSERT_TRUE(write_file_atomically(path, "# nothing but words\n"));
  const auto recipe = Recipe::load(path, {"seed=3"});
  ASSERT_FALSE(recipe);
  EXPECT_EQ(recipe.error().message, path.string() + ": is empty; expected a recipe, such as method: grpo");
  std::filesystem::remove(path);
}

TEST(Recipe, SuggestsWhatAMistypedNameMeant) {
  EXPECT_EQ(refusal({"method=grop"}), "command line: method: there is no method 'grop'; did you mean 'grpo'?");
  EXPECT_THAT(refusal({"env=sokobann"}),
              HasSubstr("command line: env: there is no environment 'sokobann'; did you mean 'sokoban'?"));
  EXPECT_EQ(refusal({"lr=1e-5"}), "command line: lr: unknown key; did you mean train.learning_rate?");
  EXPECT_EQ(refusal({"critic.lr=1e-5"}), "command line: critic.lr: unknown key; did you mean critic.learning_rate?");
}

TEST(Recipe, KnowsVerlsKeysAndFamiliarNames) {
  std::set<std::string> known;
  for (const std::string method : {"ppo", "grpo", "dapo"}) {
    const FieldTable table = recipe_of({"method=" + method, "env=gsm8k"}).table();
    for (const FieldRow& row : table.rows()) known.insert(row.key);
  }
  for (const FieldTable table = recipe_of({"env=dataset"}).table(); const FieldRow& row : table.rows())
    known.insert(row.key);
  for (const Alias& alias : all_aliases())
    for (const std::string_view key : alias.ours) EXPECT_TRUE(known.contains(std::string(key))) << key;
  for (const char* word : {"lr", "steps", "n", "num_generations", "max_new_tokens", "beta", "output_dir", "model"})
    EXPECT_TRUE(known.contains(std::string(familiar_key(word)))) << word;
}

TEST(Recipe, AcceptsACommonVerlCommandLine) {
  const Recipe recipe = recipe_of({"algorithm.adv_estimator=grpo",
                                   "data.train_batch_size=32",
                                   "data.max_prompt_length=512",
                                   "data.max_response_length=1024",
                                   "actor_rollout_ref.actor.optim.lr=1e-6",
                                   "actor_rollout_ref.actor.ppo_mini_batch_size=8",
                                   "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4",
                                   "actor_rollout_ref.actor.use_kl_loss=True",
                                   "actor_rollout_ref.actor.kl_loss_coef=0.001",
                                   "actor_rollout_ref.actor.kl_loss_type=low_var_kl",
                                   "actor_rollout_ref.model.use_remove_padding=True",
                                   "actor_rollout_ref.actor.fsdp_config.param_offload=False",
                                   "actor_rollout_ref.rollout.tensor_model_parallel_size=2",
                                   "actor_rollout_ref.rollout.name=vllm",
                                   "actor_rollout_ref.rollout.gpu_memory_utilization=0.6",
                                   "actor_rollout_ref.rollout.n=5",
                                   "algorithm.use_kl_in_reward=False",
                                   "trainer.critic_warmup=0",
                                   "trainer.logger=[console, wandb]",
                                   "trainer.nnodes=1",
                                   "trainer.n_gpus_per_node=8",
                                   "trainer.save_freq=-1",
                                   "trainer.test_freq=5",
                                   "trainer.total_epochs=15"});
  EXPECT_EQ(recipe.train.groups_per_step, 32);
  EXPECT_EQ(recipe.train.task_epochs, 15);
  EXPECT_EQ(recipe.train.mini_batches, 4);
  EXPECT_EQ(recipe.rollout.options.episode.max_response_tokens, 1024);
  EXPECT_EQ(recipe.method.objective.kl_coefficient, 0.001);
  EXPECT_EQ(recipe.train.save_every, 0);
  EXPECT_EQ(recipe.train.save_minutes, 10) << "a run that is killed has to have saved something";
}

TEST(Recipe, TaskEpochsBecomeStepsOnceTheRowsAreKnown) {
  const auto file = std::filesystem::path(::testing::TempDir()) / "epoch_rows.jsonl";
  std::string rows;
  for (int i = 0; i < 10; ++i)
    rows += R"({"question": "q", "answer": "a"})"
            "\n";
  ASSERT_TRUE(write_file_atomically(file, rows).ok());
  const std::vector<std::string> data{"env=dataset", "env.train_file=" + file.string(),
                                      "env.test_file=" + file.string(), "train.groups_per_step=4"};
  const auto steps = [&](const std::string& recipe_text, std::vector<std::string> overrides) {
    overrides.insert(overrides.begin(), data.begin(), data.end());
    Recipe recipe = Recipe::parse(recipe_text, "recipe.yaml", overrides).value();
    EXPECT_TRUE(recipe.environment->prepare(1).ok());
    EXPECT_TRUE(recipe.settle_steps().ok());
    EXPECT_EQ(recipe.train.task_epochs, 0) << "the resolved recipe has steps alone";
    return recipe.train.steps;
  };
  EXPECT_EQ(steps("train.task_epochs: 3", {}), 8);
  EXPECT_EQ(steps("num_train_epochs: 0.2", {}), 1);
  EXPECT_EQ(steps("train.task_epochs: 3", {"train.steps=7"}), 7);
  EXPECT_EQ(steps("train.steps: 7", {"trainer.total_epochs=2"}), 5);
  EXPECT_THAT(refusal({"train.steps=7", "train.task_epochs=2"}),
              HasSubstr("train.task_epochs: train.steps says when training is over, too; expected one of them"));
  Recipe endless = recipe_of({"env=frozen_lake", "train.task_epochs=1"});
  ASSERT_TRUE(endless.environment->prepare(1).ok());
  EXPECT_EQ(endless.settle_steps().error().message,
            "train.task_epochs: environment 'frozen_lake' makes tasks without end; expected train.steps");
  std::filesystem::remove(file);
}

/// The numeric keys below any of `sections`.
std::vector<FieldRow> numeric_rows(const std::vector<std::string>& settings, const std::vector<std::string>& sections) {
  std::vector<FieldRow> rows;
  const FieldTable table = recipe_of(settings).table();
  for (const FieldRow& row : table.rows())
    for (const std::string& section : sections)
      if (row.key.starts_with(section) && (row.type == "int" || row.type == "float" || row.type == "list[float]"))
        rows.push_back(row);
  return rows;
}

/// An environment with these settings either reports what is wrong or opens a task.
void open_a_task(Recipe& recipe) {
  if (recipe.environment->prepare(0)) (void)recipe.environment->make(Split::Train, 0)->open();
}

/// Extremes never crash: no key takes an infinity, NaN, or a count that overflows.
int check_extremes(std::vector<std::string> settings, const std::vector<std::string>& sections) {
  const auto rows = numeric_rows(settings, sections);
  settings.emplace_back();
  for (const FieldRow& row : rows) {
    const bool list = row.type.starts_with("list"), count = row.type == "int" && row.key != "seed";
    for (const std::string value : {".inf", "-.inf", ".nan", "nan", "99999999999999999999", "2147483647",
                                    "9223372036854775807", "-1", "-2147483648", "1e308"}) {
      settings.back() = row.key + "=" + (list ? "[" + value + "]" : value);
      auto recipe = Recipe::parse("", "recipe.yaml", settings);
      const bool never = value.find("inf") != std::string::npos || value.find("nan") != std::string::npos;
      const bool overflows = count && (value == "2147483647" || value.size() > 15);
      if (never || overflows) {
        EXPECT_FALSE(recipe) << settings.back();
      }
      if (!recipe) {
        EXPECT_THAT(recipe.error().message, HasSubstr("command line: " + row.key + ": ")) << settings.back();
      } else if (row.key.starts_with("env.")) {
        open_a_task(*recipe);
      }
    }
  }
  return static_cast<int>(rows.size());
}

TEST(Recipe, BoundsEveryCountOfEveryEnvironment) {
  int counts = 0;
  for (const EnvironmentEntry& entry : environments()) {
    const std::string env = "env=" + std::string(entry.name);
    for (const FieldRow& row : numeric_rows({env, "rollout.answer_lead=x"}, {"env."})) {
      if (row.type != "int") continue;
      EXPECT_THAT(
          refusal({env, row.key + "=1000000000"}),
          AllOf(HasSubstr("command line: " + row.key + ": expected an integer at least "), HasSubstr(" and at most ")));
      ++counts;
    }
  }
  EXPECT_GT(counts, 20);
}

TEST(Recipe, RefusesExtremesOfEveryKeyWhereTheyAreRead) {
  int keys = check_extremes({}, {"seed", "threads", "model.", "lora.", "tokenizer.", "sft.", "rollout.", "train.",
                                 "critic.", "memory.", "eval."});
  for (const EnvironmentEntry& entry : environments())
    keys += check_extremes({"env=" + std::string(entry.name)}, {"env."});
  for (const MethodEntry& entry : methods()) {
    const std::string base = entry.is_base() ? "" : "grpo + ";
    keys += check_extremes({"env=skeleton", "rollout.answer_lead=x", "method=" + base + std::string(entry.name)},
                           {"method.", "objective.", "filter."});
  }
  EXPECT_GT(keys, 300);
}

}  // namespace
}  // namespace carnot
