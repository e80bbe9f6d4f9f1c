#include "carnot/core/run/console_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace carnot {
namespace {

const StepMetrics kStep{
    {"env/search_qa/success", 0.484375}, {"critic/score/mean", -0.0625},   {"actor/entropy", 0.0861},
    {"response_length/mean", 71.46},     {"num_turns/mean", 3.56},         {"env/search_qa/format", 1},
    {"actor/grad_norm", 0.07713},        {"actor/pg_clipfrac", 0.0009794}, {"timing_s/step", 0.71},
    {"perf/throughput", 12345}};

TEST(ConsoleLines, OfAStepTellWhatFitsIntoTheTerminal) {
  const ConsolePlace narrow{.step = 40, .steps = 130, .width = 79}, wide{.step = 40, .steps = 130, .width = 119};
  EXPECT_EQ(step_line(narrow, kStep, "search_qa"),
            "step  40/130  success  48.4 %  score -0.06  entropy 0.086  length   71    0.7 s");
  EXPECT_EQ(
      step_line(wide, kStep, "search_qa"),
      "step  40/130  success  48.4 %  score -0.06  entropy 0.086  length   71  turns 3.56  format 100.0 %    0.7 s");
  EXPECT_EQ(step_line({.step = 40, .steps = 130, .width = 10}, kStep, "search_qa"), "step  40/130    0.7 s");
  EXPECT_EQ(step_line(narrow, {}, "search_qa"), "step  40/130  ");
}

TEST(ConsoleLines, OfAStepShowGroupsWithoutSignalAndTruncatedResponsesOnceThereAreAny) {
  StepMetrics dying = kStep;
  dying["frac_reward_zero_std"] = 0;
  dying["response_length/clip_ratio"] = 0;
  const ConsolePlace place{.step = 40, .steps = 130, .width = 79};
  EXPECT_EQ(step_line(place, dying, "search_qa"), step_line(place, kStep, "search_qa"));
  dying["frac_reward_zero_std"] = 0.25;
  dying["response_length/clip_ratio"] = 1;
  EXPECT_EQ(step_line(place, dying, "search_qa"),
            "step  40/130  success  48.4 %  no signal  25.0 %  truncated 100.0 %    0.7 s");
}

TEST(DeadShares, TellTheMeanAndTheLastStep) {
  DeadShares dead;
  EXPECT_EQ(dead.lines(), "");
  dead.add({{"frac_reward_zero_std", 0.25}, {"response_length/clip_ratio", 0}});
  dead.add({{"frac_reward_zero_std", 1}, {"response_length/clip_ratio", 0}});
  EXPECT_EQ(dead.lines(), "Groups without signal (equal rewards): 62.5 % of all, 100.0 % in the last step\n");
}

TEST(ConsoleLines, OfStepsStandBelowEachOther) {
  StepMetrics later = kStep;
  later["env/search_qa/success"] = 0.05;
  later["critic/score/mean"] = 0.5;
  later["timing_s/step"] = 123.4;
  for (const int width : {79, 119})
    EXPECT_EQ(step_line({.step = 8, .steps = 130, .width = width}, later, "search_qa").size(),
              step_line({.step = 100, .steps = 130, .width = width}, kStep, "search_qa").size());
}

TEST(ConsoleLines, OfEvaluationAndSftFitIntoTheTerminal) {
  Evaluation evaluation{.success = {.successes = 76, .trials = 400, .tasks = 400}, .mean_score = 0.205, .seconds = 12};
  evaluation.response_length = 43.31;
  evaluation.entropy = 0.1852;
  const std::string success = "evaluation step_100  success 19.0 % [15.5, 23.1]  400 trajectories";
  EXPECT_EQ(evaluation_line("step_100", evaluation, 79), success + "  0:12");
  EXPECT_EQ(evaluation_line("step_100", evaluation, 119), success + "  score 0.205  length 43.3  entropy 0.185  0:12");
  StepMetrics sft{{"sft/loss", 0.2134}};
  EXPECT_EQ(sft_line({.step = 1000, .steps = 1000}, sft, 65), "SFT 1000/1000  loss 0.213  1:05");
  sft["val/loss"] = 0.3046;
  EXPECT_EQ(sft_line({.step = 1000, .steps = 1000}, sft, 65), "SFT 1000/1000  loss 0.213  held out 0.305  1:05");
}

}  // namespace
}  // namespace carnot
