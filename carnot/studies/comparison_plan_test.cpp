#include "carnot/studies/comparison_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "carnot/core/base/file.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class ComparisonPlans : public ::testing::Test {
 protected:
  ComparisonPlans() : root_(fs::temp_directory_path() / ("carnot_plan_test_" + std::to_string(::getpid()))) {
    fs::create_directories(root_);
    write("recipe.yaml", "sft: {steps: 7}\ntrain: {steps: 3}\n");
  }
  ~ComparisonPlans() override { fs::remove_all(root_); }

  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((root_ / name).parent_path());
    ASSERT_TRUE(write_file_atomically(root_ / name, text).ok());
  }

  ComparisonRequest request(const std::string& methods) const {
    return {.recipe = root_ / "recipe.yaml", .methods = methods, .seeds = "0,2", .output = root_ / "out"};
  }

  std::string error_of(const ComparisonRequest& request) const {
    const auto plan = plan_comparison(request);
    return plan ? "" : plan.error().message;
  }

  fs::path root_;
};

TEST_F(ComparisonPlans, GivesEverySeedOneStartAndEveryMethodThatStart) {
  const auto plan = plan_comparison(request("grpo, grpo + aem [train.steps=5]"));
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  ASSERT_EQ(plan->seeds.size(), 2u);
  const PlannedSeed& planned = plan->seeds[1];
  EXPECT_EQ(planned.seed, 2);
  EXPECT_EQ(planned.start.sft.steps, 7);
  EXPECT_EQ(planned.start.run.run_folder, root_ / "out/seed_2/warm_start");
  const Recipe& aem = planned.runs[1];
  EXPECT_EQ(aem.run.seed, 2);
  EXPECT_EQ(aem.method.name, "grpo + aem");
  EXPECT_EQ(aem.model.path, root_ / "out/seed_2/warm_start/checkpoints/global_step_7");
  EXPECT_EQ(aem.sft.steps, 0);
  EXPECT_FALSE(aem.evaluation.before_training);
  EXPECT_EQ(aem.train.steps, 5);
  EXPECT_EQ(planned.runs[0].train.steps, 3);
  EXPECT_FALSE(fs::exists(root_ / "out")) << "a plan writes nothing";
}

TEST_F(ComparisonPlans, SftAloneStartsWhereTheRecipeDoes) {
  const auto plan = plan_comparison(request("grpo, sft [sft.steps=9]"));
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  const Recipe& control = plan->seeds[0].runs[1];
  EXPECT_EQ(plan->seeds[0].start.sft.steps, 7);
  EXPECT_EQ(control.sft.steps, 9);
  EXPECT_EQ(control.train.steps, 0);
  EXPECT_EQ(control.model.path, "");
  EXPECT_THAT(error_of(request("grpo, sft [sft.steps=0]")), HasSubstr("sft [sft.steps=0]: sft.steps: is 0; expected"));
  EXPECT_THAT(error_of(request("grpo, sft [train.steps=2]")),
              HasSubstr("sft [train.steps=2]: train.steps: all methods share it; expected a key of sft"));
}

TEST_F(ComparisonPlans, AShapeOnTheCommandLineIsTheWarmStarts) {
  ComparisonRequest one = request("grpo");
  one.settings = {"model.hidden_size=96", "tokenizer.vocab_size=900"};
  const auto plan = plan_comparison(one);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(plan->seeds[0].start.model.shape.hidden_size, 96);
  EXPECT_EQ(plan->seeds[0].runs[0].model.path, root_ / "out/seed_0/warm_start/checkpoints/global_step_7");
}

TEST_F(ComparisonPlans, WithoutAWarmStartRunsBeginWhereTheRecipeDoes) {
  ComparisonRequest one = request("grpo");
  one.settings = {"sft.steps=0", "train.steps=4"};
  const auto plan = plan_comparison(one);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(plan->seeds[0].start.train.steps, 0);
  EXPECT_EQ(plan->seeds[0].runs[0].train.steps, 4);
  EXPECT_EQ(plan->seeds[0].runs[0].model.path, "");
}

TEST_F(ComparisonPlans, NamesEveryProblemAtOnce) {
  ComparisonRequest wrong = request("grpo, grqo, rloo [train.stepz=2]");
  EXPECT_THAT(error_of(wrong), AllOf(HasSubstr("there is no method 'grqo'"),
                                     HasSubstr("rloo [train.stepz=2]: command line: train.stepz: unknown key")));
  wrong = request("grpo [env.people=3]");
  wrong.seeds = "x";
  wrong.settings = {"seed=3", "method=ppo"};
  EXPECT_THAT(error_of(wrong), AllOf(HasSubstr("env.people: all methods share it"), HasSubstr("--seeds"),
                                     HasSubstr("--methods"), HasSubstr("\"x\"")));
  wrong = request("grpo, rloo");
  wrong.base = "ppo";
  EXPECT_THAT(error_of(wrong), HasSubstr("expected one of grpo, rloo"));
  wrong = request("grpo");
  wrong.settings = {"train.stepz=1"};
  EXPECT_THAT(error_of(wrong), Not(HasSubstr("\n"))) << "once, not for every run";
  EXPECT_THAT(error_of(request("grpo [train.task_epochs=2]")),
              HasSubstr("train.task_epochs: a comparison counts steps; expected train.steps"));
}

TEST_F(ComparisonPlans, LeavesOutOfAllWhatTheEnvironmentCannotHave) {
  ComparisonRequest all = request("all");
  all.settings = {"env=sudoku"};
  const auto plan = plan_comparison(all);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  ASSERT_EQ(plan->left_out.size(), 2u);
  EXPECT_EQ(plan->left_out[0].name, "igpo");
  EXPECT_EQ(plan->left_out[1].name, "a2tgpo");
  for (const auto& left_out : plan->left_out) EXPECT_THAT(left_out.reason, HasSubstr("information gain"));
  EXPECT_EQ(plan->contestants[plan->base].name(), "grpo");
  all.methods = "grpo, igpo";
  EXPECT_THAT(error_of(all), HasSubstr("igpo: rollout.answer_lead"));
}

TEST_F(ComparisonPlans, SaysWhereTheRecipeReplacesWhatAMethodAsksFor) {
  ComparisonRequest one = request("gspo, gspo [objective.clip_high=0.28]");
  one.settings = {"objective.clip_high=0.28"};
  const auto plan = plan_comparison(one);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  ASSERT_EQ(plan->notes.size(), 1u) << "who sets it for one method means it";
  EXPECT_THAT(plan->notes[0], HasSubstr("gspo: objective.clip_high is 0.28, the method's own is 4e-04"));
}

TEST_F(ComparisonPlans, OneRecipeMayHoldSettingsOfSeveralMethods) {
  write("recipe.yaml", "sft: {steps: 7}\nmethod: {name: grpo, gspo: {divide_by_std: false}, aem: {lambda: 2}}\n");
  auto plan = plan_comparison(request("grpo, gspo, rloo + aem"));
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  std::vector<Recipe>& runs = plan->seeds[0].runs;
  EXPECT_THAT(runs[0].method.warnings, ElementsAre("method.gspo: not used, since the method is grpo",
                                                   "method.aem: not used, since the method is grpo"));
  EXPECT_THAT(runs[1].to_yaml(), AllOf(HasSubstr("divide_by_std: false"), Not(HasSubstr("aem"))));
  EXPECT_THAT(runs[2].to_yaml(), HasSubstr("lambda: 2"));
}

TEST_F(ComparisonPlans, RefusesAFolderThatHoldsOtherSettings) {
  auto plan = plan_comparison(request("grpo, rloo"));
  ASSERT_TRUE(plan.ok());
  PlannedSeed& planned = plan->seeds[0];
  write("out/seed_0/warm_start/config.yaml", planned.start.to_yaml());
  write("out/seed_0/rloo/config.yaml", planned.runs[1].to_yaml());
  EXPECT_EQ(error_of(request("grpo, rloo")), "");
  ComparisonRequest longer = request("grpo, rloo");
  longer.settings = {"train.steps=4", "threads=3"};
  EXPECT_EQ(error_of(longer),
            (root_ / "out/seed_0/rloo").string() +
                ": holds a run of other settings: train.steps: 3 recorded, 4 now; name another folder with --output");
  ComparisonRequest warmer = request("grpo");
  warmer.settings = {"sft.steps=8"};
  EXPECT_THAT(error_of(warmer),
              HasSubstr("seed_0/warm_start: holds a run of other settings: sft.steps: 7 recorded, 8 now"));
}

}  // namespace
}  // namespace carnot
