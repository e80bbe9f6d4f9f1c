#include "carnot/core/rank/launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace carnot {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Variables of_torchrun_example() {
  return {{"RANK", "5"},
          {"WORLD_SIZE", "8"},
          {"LOCAL_RANK", "1"},
          {"LOCAL_WORLD_SIZE", "4"},
          {"MASTER_ADDR", "10.0.0.7"},
          {"MASTER_PORT", "41234"},
          {"TORCHELASTIC_USE_AGENT_STORE", "True"},
          {"TORCHELASTIC_RUN_ID", "night"},
          {"TORCHELASTIC_RESTART_COUNT", "2"}};
}

Variables of_srun_example() {
  return {{"SLURM_JOB_ID", "200505"},
          {"SLURM_STEP_ID", "3"},
          {"SLURM_STEP_NUM_TASKS", "7"},
          {"SLURM_PROCID", "6"},
          {"SLURM_LOCALID", "0"},
          {"SLURM_NODEID", "3"},
          {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"},
          {"SLURM_STEP_NODELIST", "gpu[003-005,9]"}};
}

std::string problems_of(const Variables& variables) {
  const auto setting = rank_setting(variables);
  return setting ? "none" : setting.error().message;
}

TEST(RankSetting, IsThatOfAProcessAloneWithoutALauncher) {
  EXPECT_EQ(rank_setting({{"PATH", "/bin"}, {"MASTER_PORT", "x"}}).value(), RankSetting());
}

TEST(RankSetting, ReadsTorchrunsVariables) {
  EXPECT_EQ(rank_setting(of_torchrun_example()).value(), (RankSetting{.rank = 5,
                                                                      .size = 8,
                                                                      .local_rank = 1,
                                                                      .local_size = 4,
                                                                      .address = "10.0.0.7",
                                                                      .port = 41234,
                                                                      .launcher_has_store = true,
                                                                      .group_name = "night/2"}));
}

TEST(RankSetting, NeedsNoMoreThanRankSizeAndAddressByHand) {
  EXPECT_EQ(rank_setting({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}}).value(),
            (RankSetting{.rank = 1, .size = 2, .address = "a", .port = 29500, .group_name = "/"}));
}

TEST(RankSetting, ReadsASlurmStep) {
  EXPECT_EQ(rank_setting(of_srun_example()).value(), (RankSetting{.rank = 6,
                                                                  .size = 7,
                                                                  .local_rank = 0,
                                                                  .local_size = 1,
                                                                  .address = "gpu003",
                                                                  .port = 20000 + (200505 + 93) % 20000,
                                                                  .group_name = "200505.3/"}));
}

TEST(RankSetting, LetsMasterAddressAndPortWinInSlurm) {
  Variables variables = of_srun_example();
  variables["SLURM_STEP_NODELIST"] = "[";
  variables["MASTER_ADDR"] = "inner";
  variables["MASTER_PORT"] = "7";
  const auto setting = rank_setting(variables);
  ASSERT_TRUE(setting) << setting.error().message;
  EXPECT_EQ(setting->address, "inner");
  EXPECT_EQ(setting->port, 7);
}

TEST(RankSetting, OfABatchScriptIsThatOfAProcessAlone) {
  EXPECT_EQ(rank_setting({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_NODELIST", "a[1-4]"}}).value(),
            RankSetting());
}

TEST(RankSetting, TakesTorchrunsVariablesWithinASlurmStep) {
  Variables variables = of_srun_example();
  variables.merge(of_torchrun_example());
  EXPECT_EQ(rank_setting(variables).value(), rank_setting(of_torchrun_example()).value());
}

TEST(RankSetting, ReadsALeaderWorkerSet) {
  EXPECT_EQ(rank_setting({{"LWS_GROUP_SIZE", "3"}, {"LWS_WORKER_INDEX", "2"}, {"LWS_LEADER_ADDRESS", "l.svc"}}).value(),
            (RankSetting{.rank = 2, .size = 3, .address = "l.svc", .port = 29500}));
}

TEST(GpuOfRank, IsTheOneWithItsNumberOnTheMachineUnlessTheLauncherHasChosenOne) {
  const RankSetting second{.rank = 5, .size = 8, .local_rank = 1, .local_size = 4};
  EXPECT_EQ(gpu_of_rank(second, {}).value(), "1");
  EXPECT_EQ(gpu_of_rank(second, {{"CUDA_VISIBLE_DEVICES", ""}}).value(), "1");
  EXPECT_EQ(gpu_of_rank(second, {{"CUDA_VISIBLE_DEVICES", "4,6,7"}}).value(), "6");
  EXPECT_EQ(gpu_of_rank(second, {{"CUDA_VISIBLE_DEVICES", "GPU-8932f937"}}).value(), "GPU-8932f937");
  const RankSetting fourth{.rank = 3, .size = 4, .local_rank = 3, .local_size = 4};
  EXPECT_EQ(gpu_of_rank(fourth, {{"CUDA_VISIBLE_DEVICES", "0,1"}}).error().message,
            "CUDA_VISIBLE_DEVICES=0,1: no GPU for local rank 3; expected one for each rank of the machine");
}

TEST(RankSetting, OfAGroupOfOneNeedsNoMeeting) {
  EXPECT_EQ(rank_setting({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_ADDR", "a"}}).value(), RankSetting());
  EXPECT_EQ(rank_setting({{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}}).value(), RankSetting());
}

TEST(RankSetting, RefusesHalfOfAPair) {
  EXPECT_THAT(problems_of({{"RANK", "0"}}), HasSubstr("WORLD_SIZE: is not set, though RANK is"));
  EXPECT_THAT(problems_of({{"WORLD_SIZE", "1"}}), HasSubstr("RANK: is not set, though WORLD_SIZE is"));
  EXPECT_THAT(problems_of({{"SLURM_STEP_NUM_TASKS", "2"}, {"MASTER_ADDR", "a"}}),
              HasSubstr("SLURM_PROCID: is not set"));
  EXPECT_THAT(problems_of({{"LWS_GROUP_SIZE", "2"}}), HasSubstr("LWS_WORKER_INDEX: is not set"));
}

TEST(RankSetting, NamesEveryVariableThatIsNotANumber) {
  Variables variables = of_torchrun_example();
  variables["RANK"] = "first";
  variables["LOCAL_RANK"] = "-1";
  variables["MASTER_PORT"] = "70000";
  EXPECT_THAT(problems_of(variables), AllOf(HasSubstr("RANK: first; expected an integer"), HasSubstr("LOCAL_RANK: -1"),
                                            HasSubstr("MASTER_PORT: 70000; expected an integer from 1 to 65535")));
}

TEST(RankSetting, RefusesContradictions) {
  Variables variables = of_torchrun_example();
  variables["RANK"] = "8";
  variables["LOCAL_RANK"] = "4";
  EXPECT_THAT(problems_of(variables), AllOf(HasSubstr("rank 8 is not in a group of 8 ranks; expected 0 to 7"),
                                            HasSubstr("local rank 4 is not in a group of 4 ranks on this machine")));
  variables = of_torchrun_example();
  variables["LOCAL_WORLD_SIZE"] = "9";
  EXPECT_THAT(problems_of(variables), HasSubstr("9 ranks on this machine, of 8 in all"));
  variables = of_torchrun_example();
  variables.erase("MASTER_ADDR");
  EXPECT_THAT(problems_of(variables), HasSubstr("MASTER_ADDR: is not set; expected the host of rank 0"));
  EXPECT_THAT(problems_of({{"RANK", "1"}, {"WORLD_SIZE", "1"}}), HasSubstr("rank 1 is not in a group of 1"));
}

TEST(RankSetting, SaysThatAListOfHostsCannotBeRead) {
  Variables variables = of_srun_example();
  variables["SLURM_STEP_NODELIST"] = "gpu[1";
  variables["SLURM_STEP_TASKS_PER_NODE"] = "2(y3)";
  EXPECT_THAT(problems_of(variables), AllOf(HasSubstr("SLURM_STEP_NODELIST: gpu[1: cannot be read"),
                                            HasSubstr("SLURM_STEP_TASKS_PER_NODE: 2(y3): cannot be read")));
}

TEST(FirstOfNodeList, IsTheFirstNameWithItsLeadingZeros) {
  EXPECT_EQ(first_of_node_list("gpu[003-007,9],cpu1").value(), "gpu003");
  EXPECT_EQ(first_of_node_list("login").value(), "login");
  EXPECT_EQ(first_of_node_list("a,b[1-2]").value(), "a");
  EXPECT_EQ(first_of_node_list("rack[2-3]node[08,11]-ib").value(), "rack2node08-ib");
}

TEST(FirstOfNodeList, RefusesUnbalancedBrackets) {
  for (const char* list : {"", ",a", "gpu[1-2", "gpu]", "a[[1]]", "[]"}) EXPECT_FALSE(first_of_node_list(list)) << list;
}

TEST(CountOfNode, ExpandsRepetitions) {
  const int expected[] = {2, 2, 2, 1, 12};
  for (int node = 0; node < 5; ++node) EXPECT_EQ(count_of_node("2(x3),1,12", node).value(), expected[node]);
}

TEST(CountOfNode, RefusesInvalidListsOfCounts) {
  for (const char* counts : {"", "2(x3),1", "x", "2(x)", "2(x0)", "0", "2(3)", "2(x3", "99999999999999999999"})
    EXPECT_FALSE(count_of_node(counts, 4)) << counts;
}

}  // namespace
}  // namespace carnot
