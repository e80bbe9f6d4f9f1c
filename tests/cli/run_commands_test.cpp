// `carnot train` and related commands: refusals, the dry run, Ctrl-C and continuing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "carnot/core/base/file.h"
#include "program.h"
#include "testing/paths.h"

namespace carnot::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// A run of a few milliseconds per step.
std::string tiny_recipe(const ScratchFolder& scratch,
                        const std::string& env = "{name: search_qa, train_worlds: 1, held_out_worlds: 1}") {
  return scratch.write("tiny.yaml", "run_folder: " + scratch.path("run") + "\nenv: " + env + R"(
resume: auto
model: {hidden_size: 32, intermediate_size: 64, num_layers: 1, num_heads: 2, num_kv_heads: 1, head_dim: 16}
method: grpo
objective: {kl_coefficient: 0}
rollout: {group_size: 2}
train: {steps: 100000, groups_per_step: 1}
eval: {tasks: 1, before_training: false}
)");
}

std::size_t steps_logged(const ScratchFolder& scratch) {
  const auto text = read_file(scratch.path("run/metrics.jsonl"));
  return text ? split_lines(*text).size() : 0;
}

TEST(TrainCommand, ReportsEveryProblemOfTheRecipeAtOnceAndMakesNoFolder) {
  const ScratchFolder scratch;
  const std::string recipe =
      scratch.write("r.yaml", "run_folder: " + scratch.path("run") + "\ntrain:\n  stepz: 3\nseed: soon\n");
  const auto run = run_carnot({"train", recipe, "train.groups_per_step=0", "foo"});
  EXPECT_EQ(run.exit, 1);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("r.yaml:3:3: train.stepz: unknown key; did you mean train.steps?"));
  EXPECT_THAT(run.err, HasSubstr("r.yaml:4:1: seed: expected an integer"));
  EXPECT_THAT(run.err, HasSubstr("command line: train.groups_per_step: expected an integer at least 1"));
  EXPECT_THAT(run.err, HasSubstr("expected key=value, found \"foo\""));
  EXPECT_FALSE(std::filesystem::exists(scratch.path("run")));
}

TEST(TrainCommand, ListsTheRecipesIfNoneIsGiven) {
  const ScratchFolder scratch;
  const std::string recipe = tiny_recipe(scratch);
  for (const char* command : {"train", "compare"})
    EXPECT_THAT(run_carnot({command, scratch.path("none.yaml")}).err, HasSubstr("recipes here: " + recipe)) << command;
  const auto run = run_carnot({"train"});
  EXPECT_EQ(run.exit, 2);
  EXPECT_THAT(run.err, HasSubstr("RECIPE is required"));
}

TEST(TrainCommand, FindsTheRecipesThatComeWithTheProgramFromAnyFolder) {
  const ScratchFolder scratch;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(scratch.path("."));
  const auto own = run_carnot({"train", "recipes/quickstart.yaml", "--dry-run"});
  const auto missing = run_carnot({"train", "recipes/quick.yaml", "--dry-run"});
  scratch.write("recipes/quickstart.yaml", "seed: here");
  const auto users = run_carnot({"train", "recipes/quickstart.yaml", "--dry-run"});
  std::filesystem::current_path(before);
  EXPECT_EQ(own.exit, 0) << own.err;
  EXPECT_THAT(own.out, HasSubstr("search_qa"));
  EXPECT_THAT(missing.err, HasSubstr("recipes/quick.yaml: does not exist; recipes here: recipes/alfworld.yaml"));
  EXPECT_THAT(users.err, HasSubstr("recipes/quickstart.yaml:1:1: seed: expected an integer"));
}

TEST(TrainCommand, RefusesMissingInputAndUnwritableOutput) {
  const ScratchFolder scratch;
  const std::string recipe = tiny_recipe(scratch);
  EXPECT_THAT(run_carnot({"train", scratch.path("none.yaml")}).err, HasSubstr("none.yaml: does not exist"));
  EXPECT_EQ(run_carnot({"train"}).exit, 2);
  const auto run = run_carnot({"train", recipe, "run_folder=/proc/nowhere/run"});
  EXPECT_EQ(run.exit, 1);
  EXPECT_THAT(run.err, HasSubstr("/proc/nowhere/run"));
  EXPECT_THAT(run.err, Not(HasSubstr("internal error")));
  EXPECT_EQ(run_carnot({"eval", scratch.path("none")}).exit, 1);
}

TEST(TrainCommand, SuggestsWhatWasMeant) {
  const ScratchFolder scratch;
  const std::string recipe = tiny_recipe(scratch);
  EXPECT_THAT(run_carnot({"train", recipe, "method=grop"}).err,
              HasSubstr("carnot: command line: method: there is no method 'grop'; did you mean 'grpo'?\n"));
  EXPECT_THAT(run_carnot({"train", recipe, "lr=0.1"}).err,
              HasSubstr("lr: unknown key; did you mean train.learning_rate?"));
  EXPECT_THAT(run_carnot({"train", recipe, "--steps", "10"}).err, HasSubstr("as in train.steps=10"));
  EXPECT_THAT(run_carnot({"train", scratch.write("empty.yaml", "")}).err, HasSubstr("empty.yaml: is empty"));
  EXPECT_THAT(run_carnot({"train", recipe, "a\x1b[2Jz=1"}).err, HasSubstr("command line: a\\x1b[2Jz: unknown key"));
  const auto verl = run_carnot({"train", recipe, "trainer.nnodes=2", "actor_rollout_ref.rollout.n=3", "--dry-run"});
  ASSERT_EQ(verl.exit, 0) << verl.err;
  EXPECT_THAT(verl.err, HasSubstr("trainer.nnodes: has no meaning here and is ignored"));
  EXPECT_THAT(verl.out, HasSubstr("group_size: 3"));
}

TEST(TrainCommand, DryRunPrintsTheResolvedRecipeAndTheMemoryAndWritesNothing) {
  const ScratchFolder scratch;
  const auto run = run_carnot({"train", tiny_recipe(scratch), "train.groups_per_step=3", "--dry-run"});
  ASSERT_EQ(run.exit, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("groups_per_step: 3"));
  EXPECT_THAT(run.out, HasSubstr("# Memory at the peak\n"));
  EXPECT_THAT(run.out, HasSubstr("# Disk at the most\n"));
  EXPECT_THAT(run.out, HasSubstr("MiB that are free in " + scratch.path("run")));
  EXPECT_FALSE(std::filesystem::exists(scratch.path("run")));
}

TEST(TrainCommand, WarnsAboutCompositionsInTheDryRunAndInTheRun) {
  const ScratchFolder scratch;
  const std::string recipe = tiny_recipe(scratch);
  const std::string method = "method=starpo_s + aent";
  for (const std::vector<std::string>& command : {std::vector<std::string>{"train", recipe, method, "--dry-run"},
                                                  {"train", recipe, method, "train.steps=1"},
                                                  {"rollout", recipe, method, "run_folder=" + scratch.path("other")}}) {
    const auto run = run_carnot(command);
    EXPECT_EQ(run.exit, 0) << run.err;
    EXPECT_THAT(run.err, HasSubstr("aent replaces the base's entropy bonus")) << command.front();
  }
}

TEST(TrainCommand, SaysThatAModelWithoutAPathIsRandom) {
  const ScratchFolder scratch;
  const std::string recipe = tiny_recipe(scratch);
  const auto random = run_carnot({"train", recipe, "train.steps=1"});
  EXPECT_EQ(random.exit, 0) << random.err;
  EXPECT_THAT(random.out, HasSubstr(" parameters (random weights), vocabulary "));
  EXPECT_THAT(random.err, HasSubstr("training starts from random weights; expected a model.path, or sft.steps"));
  const auto named = run_carnot({"train", recipe, "train.steps=1", "run_folder=" + scratch.path("second"),
                                 "model.path=" + scratch.path("run/checkpoints/global_step_1")});
  EXPECT_EQ(named.exit, 0) << named.err;
  EXPECT_THAT(named.out + named.err, Not(HasSubstr("random weights")));
}

TEST(TrainCommand, EvaluatesEachRowOfATestFileOnce) {
  const ScratchFolder scratch;
  const std::string rows = "{\"question\": \"2+2?\", \"answer\": \"4\"}\n{\"question\": \"3+3?\", \"answer\": \"6\"}\n";
  const std::string file = scratch.write("rows.jsonl", rows);
  const std::string env = "{name: dataset, train_file: " + file + ", test_file: " + file + ", max_response_tokens: 8}";
  const auto run =
      run_carnot({"train", tiny_recipe(scratch, env), "train.steps=1", "eval.tasks=200", "eval.samples=3"});
  EXPECT_EQ(run.exit, 0) << run.err;
  EXPECT_THAT(run.err,
              HasSubstr("there are 2 validation tasks; each is evaluated once (eval.tasks=200, eval.samples=3)"));
  const auto after = nlohmann::json::parse(*read_file(scratch.path("run/summary.json"))).at("after");
  EXPECT_EQ(after.at("trials"), 6);
  EXPECT_EQ(after.at("tasks"), 2);
}

TEST(TrainCommand, EndsWithAStatusOfItsOwnWhereAnAlarmOfTheRecipeStarts) {
  const ScratchFolder scratch;
  // An untrained model answers none of them, and the scorer gives 0 to all that it says.
  const std::string file = scratch.write("rows.jsonl",
                                         "{\"question\": \"2+2?\", \"answer\": \"4\"}\n"
                                         "{\"question\": \"3+3?\", \"answer\": \"6\"}\n");
  const std::string recipe = tiny_recipe(
      scratch, "{name: dataset, train_file: " + file + ", test_file: " + file + ", max_response_tokens: 8}");
  const auto ended = run_carnot({"train", recipe, "alarm.stop=[no_signal]"});
  EXPECT_EQ(ended.exit, 3) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("\nALARM no_signal after step 2: every score since the start is 0 (2 steps).\n"));
  EXPECT_THAT(ended.out, HasSubstr("\n  For example: score 0, response: "));
  EXPECT_THAT(ended.out, HasSubstr("Ended by the alarm no_signal after training step 2; a checkpoint is written."));
  EXPECT_EQ(steps_logged(scratch), 2u);
  EXPECT_THAT(*read_file(scratch.path("run/metrics.jsonl")), HasSubstr("\"alarms/no_signal\":1"));
  EXPECT_EQ(run_carnot({"eval", scratch.path("run")}).exit, 0);

  const auto resumed = run_carnot({"train", recipe, "alarm.stop=[no_signal]", "train.steps=4"});
  EXPECT_EQ(resumed.exit, 0) << resumed.err;
  EXPECT_EQ(steps_logged(scratch), 4u);
  EXPECT_THAT(resumed.out, Not(HasSubstr("ALARM no_signal"))) << "the alarm lasts, and is not raised again";
  const auto page = run_carnot({"view", scratch.path("run")});
  EXPECT_EQ(page.exit, 0) << page.err;
  EXPECT_THAT(page.out, HasSubstr("Alarm no_signal in steps 2 to 4"));
}

/// The number in front of "MiB  in all".
int predicted_megabytes(const std::string& dry_run) {
  const std::size_t end = dry_run.rfind(" MiB  in all");
  if (end == std::string::npos) return 0;
  return static_cast<int>(std::stod(dry_run.substr(dry_run.rfind('\n', end))));
}

TEST(TrainCommand, RefusesARunThatCannotFitAndSaysWhatToChange) {
  const ScratchFolder scratch;
  std::vector<std::string> large{"train", tiny_recipe(scratch), "train.steps=1", "train.groups_per_step=8"};
  std::vector<std::string> dry = large;
  dry.push_back("--dry-run");
  const int limit = predicted_megabytes(run_carnot(dry).out) - 4;  // half of the KV cache is too much
  ASSERT_GT(limit, 100);
  for (auto command : {large, dry}) {
    command.push_back("memory.limit_megabytes=" + std::to_string(limit));
    const auto run = run_carnot(command);
    EXPECT_EQ(run.exit, 1);
    EXPECT_THAT(run.err,
                HasSubstr("expected at most the " + std::to_string(limit) + " MiB that memory.limit_megabytes allows"));
    EXPECT_THAT(run.err, HasSubstr("rollout.cache_tokens="));
    EXPECT_FALSE(std::filesystem::exists(scratch.path("run")));
  }
  const auto run =
      run_carnot({"train", tiny_recipe(scratch), "train.steps=1", "memory.limit_megabytes=20", "memory.check=warn"});
  EXPECT_EQ(run.exit, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("memory: the run would hold"));
  const auto memory = nlohmann::json::parse(*read_file(scratch.path("run/summary.json"))).at("memory");
  EXPECT_GT(memory.at("measured_peak_mib"), 20);
  EXPECT_GT(memory.at("predicted_peak_mib"), 20);
}

TEST(TrainCommand, HelpHasTheFlagsAndSaysWhereTheKeysAre) {
  const ScratchFolder scratch;
  const std::string help = run_carnot({"train", "--help"}).out;
  EXPECT_THAT(help, HasSubstr("`carnot help keys RECIPE`"));
  EXPECT_THAT(help, Not(HasSubstr("train.learning_rate=")));
  EXPECT_THAT(run_carnot({"help", "keys"}).out, HasSubstr("train.learning_rate="));
  const std::string sokoban = run_carnot({"help", "keys", "env=sokoban"}).out;
  EXPECT_THAT(sokoban, HasSubstr("env.dim_x="));
  EXPECT_THAT(sokoban, Not(HasSubstr("env.train_worlds=")));
  EXPECT_THAT(run_carnot({"help", "keys", tiny_recipe(scratch)}).out, HasSubstr("rollout.group_size=2"));
  const auto keys = nlohmann::json::parse(run_carnot({"list", "keys", "--json"}).out);
  EXPECT_EQ(keys.at(0).at("key"), "seed");
}

TEST(TrainCommand, InterruptedWritesACheckpointAndTheSameCommandContinues) {
  const ScratchFolder scratch;
  const std::string recipe = tiny_recipe(scratch);
  const auto interrupted = interrupt_carnot({"train", recipe}, [&] { return steps_logged(scratch) > 0; });
  EXPECT_EQ(interrupted.exit, 130) << interrupted.err;
  const std::size_t steps = steps_logged(scratch);
  ASSERT_GT(steps, 0u);
  EXPECT_TRUE(std::filesystem::exists(scratch.path("run/checkpoints/latest_checkpointed_iteration.txt")));

  const auto resumed = run_carnot({"train", recipe, "train.steps=" + std::to_string(steps + 2)});
  EXPECT_EQ(resumed.exit, 0) << resumed.err;
  EXPECT_GE(steps_logged(scratch), steps + 2);
  const auto shown = run_carnot({"inspect", scratch.path("run"), "--row", "1", "--tokens"});
  EXPECT_EQ(shown.exit, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("prompt      | "));
  EXPECT_THAT(shown.out, HasSubstr("advantage"));
}

/// Of the first Ctrl-C or SIGTERM.
constexpr const char* kStopping = "carnot: stopping soon; a checkpoint will be written.";

TEST(TrainCommand, SaysAtOnceThatItIsStoppingAndStopsDuringAnEvaluation) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const ScratchFolder scratch;
    // A hundred thousand tasks take longer than any test.
    const auto run = interrupt_carnot(
        {"train", tiny_recipe(scratch), "eval.before_training=true", "eval.tasks=100000", "memory.check=off"},
        [&] { return std::filesystem::exists(scratch.path("run/config.yaml")); }, signal);
    EXPECT_EQ(run.exit, 130) << run.err;
    EXPECT_THAT(run.err, HasSubstr(kStopping));
    EXPECT_THAT(run.out, HasSubstr("Stopped in the evaluation before training"));
    EXPECT_FALSE(std::filesystem::exists(scratch.path("run/validation/before.json")));
  }
}

TEST(TrainCommand, ASecondCtrlCEndsAnUnfinishedStep) {
  const ScratchFolder scratch;
  // One step of SFT takes minutes.
  const auto run = signal_carnot(
      {"train", tiny_recipe(scratch), "sft.steps=2", "sft.batch_tokens=5000000", "memory.check=off"},
      {{.ready = [&](const std::string&) { return std::filesystem::exists(scratch.path("run/config.yaml")); }},
       {.ready = [](const std::string& err) { return err.find(kStopping) != std::string::npos; }}});
  EXPECT_EQ(run.exit, 130);
  EXPECT_THAT(run.err, HasSubstr("carnot: stopped\n"));
  EXPECT_FALSE(std::filesystem::exists(scratch.path("run/warm_start/checkpoints/global_step_1")));
}

/// The words of the command that a stopped run prints.
std::vector<std::string> printed_command(const std::string& out) {
  const std::string start = "To continue: " + build_path("carnot") + " ";
  const std::size_t begin = out.find(start);
  if (begin == std::string::npos) return {};
  std::istringstream line(out.substr(begin + start.size(), out.find('\n', begin) - begin - start.size()));
  return {std::istream_iterator<std::string>(line), {}};
}

TEST(TrainCommand, InterruptedPrintsTheCommandThatContinues) {
  const ScratchFolder scratch;
  // Not the recipe alone: the run continues with its own settings.
  const auto interrupted = interrupt_carnot({"train", tiny_recipe(scratch), "train.groups_per_step=2", "seed=3"},
                                            [&] { return steps_logged(scratch) > 0; });
  EXPECT_EQ(interrupted.exit, 130) << interrupted.err;
  std::vector<std::string> command = printed_command(interrupted.out);
  EXPECT_EQ(command, (std::vector<std::string>{"train", scratch.path("run"), "resume=auto"})) << interrupted.out;
  const std::size_t steps = steps_logged(scratch);
  command.push_back("train.steps=" + std::to_string(steps + 1));
  const auto resumed = run_carnot(command);
  EXPECT_EQ(resumed.exit, 0) << resumed.err;
  EXPECT_EQ(steps_logged(scratch), steps + 1);
  EXPECT_THAT(run_carnot({"train", scratch.path("")}).err, HasSubstr("expected a recipe or a run folder"));
}

TEST(TrainCommand, KilledBeforeItSavedSaysWhatItRepeats) {
  const ScratchFolder scratch;
  const std::string recipe = tiny_recipe(scratch);
  const auto killed = interrupt_carnot({"train", recipe}, [&] { return steps_logged(scratch) > 2; }, SIGKILL);
  ASSERT_EQ(killed.exit, -1);
  const std::size_t steps = steps_logged(scratch);
  const auto resumed = run_carnot({"train", recipe, "train.steps=1"});
  EXPECT_EQ(resumed.exit, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("no checkpoint was saved; repeated: step 1 to " + std::to_string(steps)));
}

TEST(TrainCommand, KilledAndResumedEqualsTheUninterruptedRun) {
  const ScratchFolder scratch;
  // PPO and the entropy bonus give an untrained policy gradients that depend on what it sampled.
  const std::vector<std::string> settings{"train",
                                          tiny_recipe(scratch),
                                          "method=ppo",
                                          "objective.entropy_coefficient=0.01",
                                          "critic.learning_rate=1e-2",
                                          "train.learning_rate=1e-3",
                                          "train.steps=40",
                                          "train.save_minutes=0.0002"};
  const auto weights = [&](const std::string& run) {
    return *read_file(scratch.path(run + "/checkpoints/global_step_40/model.safetensors"));
  };
  std::vector<std::string> straight = settings;
  straight.push_back("run_folder=" + scratch.path("straight"));
  ASSERT_EQ(run_carnot(straight).exit, 0);

  const auto killed = interrupt_carnot(settings, [&] { return steps_logged(scratch) > 7; }, SIGKILL);
  ASSERT_EQ(killed.exit, -1);
  ASSERT_LT(steps_logged(scratch), 40u) << "the run ended before it could be killed";
  // Again, by two signals, wherever the second one arrives: in a step or while a checkpoint is written.
  const std::size_t before = steps_logged(scratch);
  const auto stopped = signal_carnot(
      settings, {{.ready = [&](const std::string&) { return steps_logged(scratch) > before + 3; }},
                 {.ready = [](const std::string& err) { return err.find(kStopping) != std::string::npos; }}});
  ASSERT_EQ(stopped.exit, 130) << stopped.err;
  ASSERT_LT(steps_logged(scratch), 40u);
  const auto resumed = run_carnot(settings);
  ASSERT_EQ(resumed.exit, 0) << resumed.err;
  EXPECT_TRUE(weights("run") == weights("straight"));
  EXPECT_EQ(steps_logged(scratch), 40u);
}

}  // namespace
}  // namespace carnot::testing
