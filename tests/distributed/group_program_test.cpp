// The program as the ranks of a group: the same files for any number of ranks, and what happens if a rank is lost.
//
//   CARNOT_FAULT_CASES=N|all   ranks that are killed, one after the other; 3 by default, 100 for `all`
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <thread>

#include "carnot/core/base/file.h"
#include "carnot/core/base/random.h"
#include "carnot/core/base/stopwatch.h"
#include "started_ranks.h"
#include "testing/missing.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::EndedRank;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::run_carnot;
using testing::ScratchFolder;
using testing::StartedRanks;

/// A critic, a warm start, evaluations and checkpoints: everything that ranks share.
std::string recipe_of_group(const ScratchFolder& scratch) {
  return scratch.write("group.yaml", R"(
threads: 1
resume: auto
env: {name: search_qa, train_worlds: 1, held_out_worlds: 1}
model: {hidden_size: 32, intermediate_size: 64, num_layers: 1, num_heads: 2, num_kv_heads: 1, head_dim: 16}
method: ppo
sft: {steps: 2, batch_tokens: 256}
rollout: {group_size: 2, max_context_tokens: 256, max_response_tokens: 16}
train: {steps: 2, groups_per_step: 4, save_every: 1, micro_batch_tokens: 256, learning_rate: 1e-3}
eval: {tasks: 3, every: 1}
distributed: {join_seconds: 120, lost_after_seconds: 5}
)");
}

std::vector<std::string> train_in(const ScratchFolder& scratch, const std::string& run,
                                  const std::vector<std::string>& overrides) {
  std::vector<std::string> arguments{"train", recipe_of_group(scratch), "run_folder=" + scratch.path(run)};
  arguments.insert(arguments.end(), overrides.begin(), overrides.end());
  return arguments;
}

std::string errors_of(const std::vector<EndedRank>& ranks) {
  std::string all;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    all += "rank " + std::to_string(rank) + " exit " + std::to_string(ranks[rank].exit) + ": " + ranks[rank].err + "\n";
  return all;
}

void expect_success(const std::vector<EndedRank>& ranks) {
  for (const EndedRank& rank : ranks) EXPECT_EQ(rank.exit, 0) << errors_of(ranks);
}

/// Weights, optimizers and what evaluations measured.
std::string results_of(const ScratchFolder& scratch, const std::string& run, int step = 2) {
  std::string all;
  const std::string checkpoint = run + "/checkpoints/global_step_" + std::to_string(step) + "/";
  for (const char* file :
       {"model.safetensors", "optimizer.safetensors", "critic.safetensors", "critic_optimizer.safetensors"}) {
    const auto hash = sha256_of_file(scratch.path(checkpoint + file));
    all += std::string(file) + " " + (hash ? *hash : hash.error().message) + "\n";
  }
  return all;
}

TEST(GroupProgram, WritesOnOneToFourRanksWhatOneProcessWrites) {
  const ScratchFolder scratch;
  const auto alone = run_carnot(train_in(scratch, "alone", {"train.virtual_shards=12"}));
  ASSERT_EQ(alone.exit, 0) << alone.err;
  const std::string expected = results_of(scratch, "alone");
  EXPECT_THAT(expected, Not(HasSubstr("No such file")));
  for (const int size : {1, 2, 3, 4}) {
    const std::string run = "ranks_" + std::to_string(size);
    const auto ranks = StartedRanks(size, train_in(scratch, run, {"train.virtual_shards=12"})).wait();
    expect_success(ranks);
    EXPECT_EQ(results_of(scratch, run), expected) << size << " ranks";
    EXPECT_THAT(ranks[0].out, HasSubstr("Run folder: "));
    for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
      EXPECT_THAT(ranks[rank].out, IsEmpty());
      EXPECT_THAT(ranks[rank].err, IsEmpty());
    }
  }
}

TEST(GroupProgram, ContinuesWithAnotherNumberOfRanksThatDividesTheShards) {
  const ScratchFolder scratch;
  const auto straight = StartedRanks(4, train_in(scratch, "straight", {})).wait();
  expect_success(straight);
  EXPECT_THAT(*read_file(scratch.path("straight/config.yaml")), HasSubstr("virtual_shards: 4"));
  expect_success(StartedRanks(4, train_in(scratch, "changed", {"train.steps=1"})).wait());
  const auto three = StartedRanks(3, train_in(scratch, "changed", {})).wait();
  EXPECT_EQ(three[0].exit, 1);
  EXPECT_THAT(three[0].err, HasSubstr("made with 4, which 3 ranks cannot share evenly"));
  for (const int rank : {1, 2}) {
    EXPECT_EQ(three[rank].exit, 1);
    EXPECT_THAT(three[rank].err, IsEmpty());
  }
  expect_success(StartedRanks(2, train_in(scratch, "changed", {})).wait());
  EXPECT_EQ(results_of(scratch, "changed"), results_of(scratch, "straight"));
}

TEST(GroupProgram, RefusesRanksWithOtherSettingsAndNamesThem) {
  const ScratchFolder scratch;
  const auto ranks =
      StartedRanks({train_in(scratch, "run", {}), train_in(scratch, "run", {"train.groups_per_step=5"})}).wait();
  EXPECT_EQ(ranks[0].exit, 1);
  EXPECT_THAT(ranks[0].err,
              AllOf(HasSubstr("carnot: rank 1 on host "), HasSubstr(": train.groups_per_step is 5, 4 on rank 0")));
  EXPECT_EQ(ranks[1].exit, 1);
  EXPECT_THAT(ranks[1].err, IsEmpty());
  EXPECT_FALSE(fs::exists(scratch.path("run/config.yaml")));
}

TEST(GroupProgram, OnMissingGpusSaysSoOnce) {
  const ScratchFolder scratch;
  const auto ranks = StartedRanks(2, train_in(scratch, "run", {"device=cuda"})).wait();
  if (ranks[0].exit == 0) CARNOT_SKIP(NoGpu, "the ranks ran");
  EXPECT_EQ(ranks[0].exit, 1);
  EXPECT_THAT(ranks[0].err, AllOf(HasSubstr("rank 0 on host "), HasSubstr(": device: cuda: ")));
  EXPECT_EQ(ranks[1].exit, 1);
  EXPECT_THAT(ranks[1].err, IsEmpty());
  EXPECT_FALSE(fs::exists(scratch.path("run")));
}

TEST(GroupProgram, PredictsTheMemoryOfEachRank) {
  const ScratchFolder scratch;
  std::vector<std::string> arguments = train_in(scratch, "run", {"--dry-run", "--ranks", "4"});
  const auto plan = run_carnot(arguments);
  EXPECT_EQ(plan.exit, 0) << plan.err;
  EXPECT_THAT(plan.out, AllOf(HasSubstr("# Memory at the peak, of each rank"), HasSubstr("shared by 4 ranks"),
                              HasSubstr(" MiB for 4 ranks on one machine")));
  const auto launched = StartedRanks(2, train_in(scratch, "run", {"--dry-run"})).wait();
  expect_success(launched);
  EXPECT_THAT(launched[0].out, HasSubstr(" MiB for 2 ranks on one machine"));
  EXPECT_THAT(launched[1].out, IsEmpty());
  EXPECT_EQ(run_carnot(train_in(scratch, "run", {"--ranks", "4"})).exit, 2);
  EXPECT_FALSE(fs::exists(scratch.path("run")));
}

int kills() {
  const char* wanted = std::getenv("CARNOT_FAULT_CASES");
  if (!wanted) return 3;
  return std::string(wanted) == "all" ? 100 : std::atoi(wanted);
}

bool holds_folder(const std::string& folder, pid_t process) {
  const auto lock = read_file(folder + "/.carnot-lock");
  return lock && lock->find(std::to_string(process)) != std::string::npos;
}

TEST(GroupProgram, WhoseRanksAreKilledEndsWithOneMessageAndThenContinuesToTheResultOfTheUninterruptedRun) {
  const ScratchFolder scratch;
  const int steps = 6;
  const std::vector<std::string> overrides{"train.steps=" + std::to_string(steps)};
  expect_success(StartedRanks(3, train_in(scratch, "straight", overrides)).wait());
  RandomStream random(7);
  std::string run = "killed";
  int killed = 0, completed = 0;
  double longest = 0;  // seconds from the kill to the end of the others
  while (killed < kills()) {
    const int victim = killed % 3;
    StartedRanks group(3, train_in(scratch, run, overrides));
    // At any moment after the group has met; if the run has ended by then, another one follows.
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!holds_folder(scratch.path(run), group.process(0)) && std::chrono::steady_clock::now() < give_up)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::this_thread::sleep_for(std::chrono::milliseconds(static_cast<int>(random.uniform() * 1500)));
    kill(group.process(victim), SIGKILL);
    const Stopwatch since;
    const auto ranks = group.wait();
    // Killed after all others had left, it changes nothing for them.
    const bool had_left = ranks[(victim + 1) % 3].exit == 0 && ranks[(victim + 2) % 3].exit == 0;
    if (ranks[victim].signal == 0 || had_left) {
      if (!had_left) expect_success(ranks);
      EXPECT_EQ(results_of(scratch, run, steps), results_of(scratch, "straight", steps));
      run = "killed_" + std::to_string(++completed);
      continue;
    }
    ++killed;
    longest = std::max(longest, since.seconds());
    int messages = 0;
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == victim) continue;
      EXPECT_EQ(ranks[rank].exit, 75) << errors_of(ranks);
      if (ranks[rank].err.find("carnot: ") == std::string::npos) continue;  // a resumed run also says what it repeats
      ++messages;
      EXPECT_THAT(ranks[rank].err, HasSubstr("carnot: rank " + std::to_string(victim) + " on host "));
    }
    EXPECT_EQ(messages, 1) << errors_of(ranks);
    if (HasFailure()) break;
  }
  expect_success(StartedRanks(3, train_in(scratch, run, overrides)).wait());
  EXPECT_EQ(results_of(scratch, run, steps), results_of(scratch, "straight", steps));
  std::cout << killed << " ranks killed; " << completed + 1 << " runs came to their end; the other ranks ended within "
            << longest << " s\n";
}

}  // namespace
}  // namespace carnot
