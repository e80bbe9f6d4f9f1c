// Training with workers that are killed, a broker and a trainer that are killed: the same weights as without any.
//   CARNOT_WORKER_ROUNDS=N   disturbed runs, one after the other; 1 by default, and more if steps pass too quickly for
//   enough kills
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <thread>

#include "carnot/core/base/file.h"
#include "carnot/core/base/random.h"
#include "testing/paths.h"
#include "tests/distributed/started_ranks.h"
#include "tests/remote_rollouts/small_training.h"

namespace carnot::testing {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

using Workers = SmallTraining;

struct Kills {
  int workers = 0, brokers = 0, trainers = 0;

  void add(const Kills& other) {
    workers += other.workers;
    brokers += other.brokers;
    trainers += other.trainers;
  }
  bool are_enough() const { return workers >= 3 && brokers >= 1 && trainers >= 1; }
};

/// A run whose workers are killed at random moments. After each of its first five steps the broker or the trainer is,
/// in turn; one of the brokers loses its data.
class DisturbedRun : public Workers {
 protected:
  Kills run_to_its_end(const std::string& run, std::uint64_t seed, const std::vector<std::string>& further = {}) {
    RandomStream random(seed);
    NatsServer server(scratch_);
    std::vector<Background> workers;
    for (int i = 0; i < 3; ++i) workers.push_back(background({"worker", server.address()}));
    const auto trains = [&](int groups) {
      std::vector<std::string> overrides{"rollout.workers=" + server.address(), "resume=auto",
                                         "rollout.workers_task_groups=" + std::to_string(groups)};
      overrides.insert(overrides.end(), further.begin(), further.end());
      return background(train(run, overrides));
    };
    auto trainer = trains(2);
    const auto is_done = [&](int step) {
      while (step <= kSteps && !fs::exists(checkpoint(run, step))) ++step;
      return step <= kSteps;
    };
    Kills kills;
    for (int blows = 0, since = 0; trainer.is_running();) {
      std::this_thread::sleep_for(milliseconds(20));
      if (blows < 5 && is_done(blows + 1)) {
        std::this_thread::sleep_for(milliseconds(random.below(300)));
        if (blows % 2 == 0) {
          server.kill();
          std::this_thread::sleep_for(milliseconds(200));
          server.restart(blows != 2);
          ++kills.brokers;
        } else {
          trainer.kill();
          trainer = trains(1);
          ++kills.trainers;
        }
        ++blows;
        since = 0;
      }
      if (since == 3 || random.below(10) > 0) continue;
      Background& victim = workers[random.below(workers.size())];
      victim.kill();
      victim = background({"worker", server.address()});
      ++kills.workers, ++since;
    }
    EXPECT_EQ(trainer.wait(), 0) << trainer.written();
    return kills;
  }
};

int rounds() {
  const char* text = std::getenv("CARNOT_WORKER_ROUNDS");
  return text ? std::atoi(text) : 1;
}

TEST_F(DisturbedRun, WithKilledWorkersTrainersAndBrokersEqualsTheRunOfOneProcess) {
  ASSERT_EQ(run_carnot(train("straight")).exit, 0);
  constexpr int kMostRounds = 20;
  Kills all;
  int round = 0;
  for (; round < rounds() || (round < kMostRounds && !all.are_enough()); ++round) {
    const std::string run = "disturbed_" + std::to_string(round);
    all.add(run_to_its_end(run, 7 + static_cast<std::uint64_t>(round)));
    expect_same_run(run, "straight");
    if (HasFailure()) break;
  }
  std::cout << round << " runs: " << all.workers << " workers killed, " << all.brokers << " brokers, " << all.trainers
            << " trainers\n";
  EXPECT_TRUE(all.are_enough());
}

TEST_F(DisturbedRun, InAsynchronousModeHasEachStepOnceWithinTheBound) {
  ASSERT_EQ(run_carnot(train("straight", {"train.steps=1"})).exit, 0);
  const std::string run = "disturbed";
  run_to_its_end(run, 7, {"rollout.max_staleness=1", "rollout.in_flight_updates=true", "train.keep_rollouts=true"});
  EXPECT_EQ(metric(run, "step"), std::vector<double>({1, 2, 3, 4, 5, 6}));
  for (const double staleness : metric(run, "async/staleness/max")) EXPECT_LE(staleness, 1);
  for (const double again : metric(run, "async/tasks_again")) EXPECT_EQ(again, 0);
  EXPECT_EQ(rollouts(run, 1), rollouts("straight", 1)) << "all weights of step 1 are the first ones";
  EXPECT_EQ(weights(run).size(), 64u);
}

TEST_F(Workers, ThatAreStoppedReturnTheirTaskAndEndWithTheRun) {
  ASSERT_EQ(run_carnot(train("straight", {"train.steps=4", "lora.rank=2", "method=grpo"})).exit, 0);
  const NatsServer server(scratch_);
  auto stopped = background({"worker", server.address("second")});
  auto trainer = background(
      train("with", {"train.steps=4", "lora.rank=2", "method=grpo", "rollout.workers=" + server.address("second")}));
  ASSERT_TRUE(stopped.writes("working for process")) << stopped.written();
  stopped.signal(SIGINT);
  EXPECT_EQ(stopped.wait(), 0) << stopped.written();
  auto other = background({"worker", server.address("second"), "--one-run", "--threads", "2"});
  EXPECT_EQ(trainer.wait(), 0) << trainer.written();
  EXPECT_EQ(other.wait(), 0) << other.written();
  const auto adapters = [&](const std::string& run) {
    return read_file(checkpoint(run, 4) + "/adapter/adapter_model.safetensors").value();
  };
  EXPECT_EQ(adapters("with"), adapters("straight"));
  EXPECT_EQ(metrics("with"), metrics("straight"));
}

TEST_F(Workers, RollOutForCarnotRolloutToo) {
  const NatsServer server(scratch_);
  const auto worker = background({"worker", server.address()});
  const auto rows = [&](const std::string& run, const std::vector<std::string>& overrides) {
    auto words = train(run, overrides);
    words[0] = "rollout";
    const auto ended = run_carnot(words);
    EXPECT_EQ(ended.exit, 0) << ended.err << worker.written();
    return rollouts(run, 0);
  };
  EXPECT_EQ(rows("with", {"rollout.workers=" + server.address()}), rows("without", {}));
}

TEST_F(Workers, WithOtherKernelsAreDetectedAndTheirSamplesMeasuredAgain) {
  const NatsServer server(scratch_);
  const std::string plane = "rollout.workers=" + server.address();
  auto other = background({"worker", server.address()}, {"CARNOT_KERNELS=baseline"});
  {
    auto strict = background(train("strict", {plane}));
    ASSERT_EQ(other.wait(), 1) << other.written();
    EXPECT_THAT(other.written(), HasSubstr("this worker with baseline"));
  }
  auto trainer = background(train("with", {plane, "rollout.other_kernels=recompute", "train.keep_rollouts=true"}));
  other = background({"worker", server.address(), "--one-run"}, {"CARNOT_KERNELS=baseline"});
  EXPECT_EQ(trainer.wait(), 0) << trainer.written();
  EXPECT_EQ(other.wait(), 0) << other.written();
  EXPECT_THAT(trainer.written(), HasSubstr("with the kernels baseline"));
  EXPECT_EQ(metric("with", "rollout/other_kernels/tokens"), metric("with", "rollout/sampled_tokens"));
  for (const double difference : metric("with", "rollout/other_kernels/log_prob_abs_diff/max"))
    EXPECT_GT(difference, 0) << "the kernels differ indeed";
  for (const double difference : metric("with", "rollout_corr/log_prob_abs_diff/max")) EXPECT_EQ(difference, 0);
  const std::string manual = *read_file(source_path("docs/metrics.md"));
  for (const std::string name :
       {"rollout/other_kernels/tokens", "rollout/other_kernels/log_prob_abs_diff/max", "timing_s/other_kernels"}) {
    EXPECT_EQ(metric("with", name).size(), 6u) << name;
    EXPECT_THAT(manual, HasSubstr("`" + name + "`"));
  }
  for (int step = 1; step <= kSteps; ++step) {
    EXPECT_EQ(column("with", step, "logp_rollout"), column("with", step, "logp_old")) << "step " << step;
    EXPECT_EQ(column("with", step, "entropy"), column("with", step, "entropy_old")) << "step " << step;
  }
}

TEST_F(Workers, RollOutForSeveralRanksWhatOneProcessRollsOut) {
  ASSERT_EQ(run_carnot(train("straight", {"train.virtual_shards=4"})).exit, 0);
  for (const int size : {2, 4}) {
    const NatsServer server(scratch_);
    const auto first = background({"worker", server.address()}), second = background({"worker", server.address()});
    const std::string run = "ranks_" + std::to_string(size);
    const auto ranks =
        StartedRanks(size, train(run, {"train.virtual_shards=4", "rollout.workers=" + server.address()})).wait();
    for (const EndedRank& rank : ranks) EXPECT_EQ(rank.exit, 0) << rank.err << ranks[0].err;
    EXPECT_THAT(ranks[0].out, HasSubstr("Workers roll out: carnot worker " + server.address()));
    EXPECT_THAT(ranks[1].out, ::testing::IsEmpty());
    expect_same_run(run, "straight");
  }
}

TEST_F(Workers, WaitForRanksThatAreStartedAgain) {
  ASSERT_EQ(run_carnot(train("straight", {"train.virtual_shards=2"})).exit, 0);
  const NatsServer server(scratch_);
  auto worker = background({"worker", server.address(), "--one-run"});
  const auto words = train("lost", {"train.virtual_shards=2", "rollout.workers=" + server.address(), "resume=auto",
                                    "distributed.lost_after_seconds=5"});
  {
    StartedRanks group(2, words);
    while (!fs::exists(checkpoint("lost", 1))) std::this_thread::sleep_for(milliseconds(5));
    ::kill(group.process(1), SIGKILL);
    EXPECT_EQ(group.wait()[0].exit, 75);
  }
  for (const EndedRank& rank : StartedRanks(2, words).wait()) EXPECT_EQ(rank.exit, 0) << rank.err;
  EXPECT_EQ(worker.wait(), 0) << worker.written();
  expect_same_run("lost", "straight");
}

TEST_F(Workers, RollOutAheadForSeveralRanks) {
  const NatsServer server(scratch_);
  const auto worker = background({"worker", server.address()});
  const auto ranks =
      StartedRanks(2, train("ahead", {"rollout.workers=" + server.address(), "rollout.max_staleness=1"})).wait();
  for (const EndedRank& rank : ranks) EXPECT_EQ(rank.exit, 0) << rank.err << ranks[0].err;
  EXPECT_EQ(metric("ahead", "step"), std::vector<double>({1, 2, 3, 4, 5, 6}));
  for (const double staleness : metric("ahead", "async/staleness/max")) EXPECT_LE(staleness, 1);
}

TEST_F(Workers, AreWaitedForByAllRanksUntilOneIsStopped) {
  const NatsServer server(scratch_);
  StartedRanks group(2, train("stopped", {"rollout.workers=" + server.address()}));
  while (!fs::exists(scratch_.path("stopped") + "/metrics.jsonl")) std::this_thread::sleep_for(milliseconds(20));
  ::kill(group.process(1), SIGINT);
  const auto ranks = group.wait();
  for (const EndedRank& rank : ranks) EXPECT_EQ(rank.exit, 130) << rank.err << ranks[0].err;
}

TEST_F(Workers, ThatServeWeightsToEachOtherChangeNothing) {
  ASSERT_EQ(run_carnot(train("straight")).exit, 0);
  const NatsServer server(scratch_);
  std::vector<Background> workers;
  for (int i = 0; i < 3; ++i) workers.push_back(background({"worker", server.address(), "--serve", "127.0.0.1"}));
  auto trainer = background(train("with", {"rollout.workers=" + server.address(), "rollout.workers_uploads=1"}));
  EXPECT_EQ(trainer.wait(), 0) << trainer.written();
  expect_same_run("with", "straight");
  const auto weights_bytes = static_cast<double>(fs::file_size(checkpoint("with", kSteps) + "/model.safetensors"));
  for (const double bytes : metric("with", "perf/uploaded_bytes")) EXPECT_LE(bytes, 4 * weights_bytes);
  EXPECT_THAT(*read_file(source_path("docs/metrics.md")), HasSubstr("`perf/uploaded_bytes`"));
}

TEST_F(Workers, ServeBeyondLoopbackOnlyWithAKey) {
  const NatsServer server(scratch_);
  const auto open = run_carnot({"worker", server.address(), "--serve", "0.0.0.0:8500"});
  EXPECT_EQ(open.exit, 1);
  EXPECT_THAT(open.err, HasSubstr("--serve: other machines reach 0.0.0.0; expected --key-env"));
  EXPECT_THAT(run_carnot({"worker", server.address(), "--serve", "a/b"}).err, HasSubstr("expected an address of this"));
}

TEST_F(Workers, AreWaitedForUntilTheTrainerIsStopped) {
  const NatsServer server(scratch_);
  auto trainer = background(train("stopped", {"rollout.workers=" + server.address()}));
  ASSERT_TRUE(trainer.writes("carnot worker " + server.address())) << trainer.written();
  trainer.signal(SIGINT);
  EXPECT_EQ(trainer.wait(), 130) << trainer.written();
  EXPECT_THAT(trainer.written(), HasSubstr("resume=auto"));
}

TEST_F(Workers, WithoutTheTrainersKeyEndWithAMessage) {
  const NatsServer server(scratch_);
  auto trainer =
      background(train("locked", {"rollout.workers=" + server.address(), "rollout.workers_key_env=TRAINERS_KEY"}),
                 {"TRAINERS_KEY=abc"});
  auto wrong = background({"worker", server.address(), "--key-env", "WORKERS_KEY"}, {"WORKERS_KEY=abd"});
  EXPECT_EQ(wrong.wait(), 1);
  EXPECT_THAT(wrong.written(), HasSubstr("refuses the key; expected the one it was started with"));
  auto right = background({"worker", server.address(), "--key-env", "WORKERS_KEY"}, {"WORKERS_KEY=abc"});
  EXPECT_TRUE(right.writes("working for process")) << right.written();
  trainer.signal(SIGINT);
  EXPECT_EQ(trainer.wait(), 130) << trainer.written();
}

TEST_F(Workers, AndTrainersAreRefusedByABrokerBeforeAnyWork) {
  const NatsServer server(scratch_, {"--auth", "token-of-the-server"});
  const auto refused = run_carnot(train("r", {"rollout.workers=" + server.address()}));
  EXPECT_EQ(refused.exit, 1);
  EXPECT_THAT(refused.err, HasSubstr("the NATS server refuses this key"));
  EXPECT_FALSE(fs::exists(scratch_.path("r")));
  const auto worker = run_carnot({"worker", server.address()});
  EXPECT_EQ(worker.exit, 1);
  EXPECT_THAT(worker.err, HasSubstr("the NATS server refuses this key"));
}

TEST_F(Workers, AndTrainersRefuseImpossibleSettings) {
  EXPECT_THAT(run_carnot({"worker", "http://a:1"}).err, HasSubstr("ADDRESS: is no address of a NATS server"));
  EXPECT_THAT(run_carnot({"worker", "nats://a:1", "--key-env", "NO_SUCH_KEY"}).err,
              HasSubstr("--key-env: no such environment variable"));
  const auto open =
      run_carnot(train("r", {"sft.steps=0", "rollout.workers=nats://127.0.0.1:1", "rollout.workers_listen=0.0.0.0"}));
  EXPECT_EQ(open.exit, 1);
  EXPECT_THAT(open.err,
              HasSubstr("rollout.workers_listen: other machines reach 0.0.0.0; expected rollout.workers_key_env"));
}

}  // namespace
}  // namespace carnot::testing
