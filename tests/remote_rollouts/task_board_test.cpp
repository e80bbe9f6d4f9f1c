// Tasks and results between a trainer and its workers, whichever of them or of the broker ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "carnot/remote_rollouts/transport/staleness.h"
#include "tests/remote_rollouts/transport.h"

namespace carnot::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

TEST_F(Transport, TasksOfADyingWorkerGoToAnotherOne) {
  const NatsServer server(scratch_);
  const auto trainer = board(options(server));
  const auto dying = source(server), living = source(server);
  std::atomic<bool> end = false;
  std::thread first([&] { serve(*dying, end, "dying", [](int served) { return served < 2; }); });
  std::thread second([&] {
    serve(*living, end, "living", [](int) {
      std::this_thread::sleep_for(milliseconds(20));
      return true;
    });
  });
  EXPECT_EQ(collected(*trainer, 12), expected(12));
  EXPECT_EQ(collected(*trainer, 3), expected(3)) << "a second round";
  end = true;
  first.join();
  second.join();
}

TEST_F(Transport, ASecondResultOfATaskIsDropped) {
  const NatsServer server(scratch_);
  const auto trainer = board(options(server));
  const auto one = source(server), other = source(server);
  std::thread worker([&] {
    const Announcement to = announced(*one);
    const WorkerTask task = next_task(*one, to);
    const WorkerResult result{.worker = "one", .kernels = "avx2", .rollout = "result of " + task.key()};
    EXPECT_TRUE(other->hand_in(to, task, result)->done);
    EXPECT_TRUE(one->hand_in(to, task, result)->done);
    WorkerTask foreign = task;
    foreign.run = std::string(32, 'f');
    EXPECT_TRUE(one->hand_in(to, foreign, result)->done) << "of another run: not needed";
  });
  EXPECT_EQ(collected(*trainer, 1), expected(1));
  worker.join();
}

TEST_F(Transport, TheBrokerMayRestartWithOrWithoutItsData) {
  NatsServer server(scratch_);
  const auto trainer = board(options(server));
  const auto worker_source = source(server);
  std::atomic<bool> end = false;
  // The broker is cut off during the fifth task, and again during the tenth.
  constexpr int kCutAt[] = {5, 10};
  std::atomic<int> taken = 0, cuts = 0;
  std::thread worker([&] {
    serve(*worker_source, end, "worker", [&](int) {
      ++taken;
      while ((taken >= kCutAt[0] && cuts < 1) || (taken >= kCutAt[1] && cuts < 2))
        std::this_thread::sleep_for(milliseconds(5));
      return true;
    });
  });
  std::thread cutter([&] {
    for (const int at : kCutAt) {
      while (taken < at) std::this_thread::sleep_for(milliseconds(5));
      server.kill();
      ++cuts;
      std::this_thread::sleep_for(milliseconds(300));
      server.restart(at == kCutAt[0]);
    }
  });
  EXPECT_EQ(collected(*trainer, 20), expected(20));
  end = true;
  cutter.join();
  worker.join();
}

TEST_F(Transport, ARefusedResultSaysWhyAndItsTaskRemains) {
  const NatsServer server(scratch_);
  const auto trainer = board(options(server));
  const auto worker = source(server);
  std::atomic<bool> end = false;
  std::string refusals;
  std::thread thread([&] {
    const Announcement to = announced(*worker);
    const WorkerTask task = next_task(*worker, to);
    for (const WorkerResult& wrong : {WorkerResult{.worker = "w", .kernels = "avx512", .rollout = "fine"},
                                      WorkerResult{.worker = "w", .kernels = "avx2", .rollout = "wrong"}}) {
      const auto handed_in = worker->hand_in(to, task, wrong);
      EXPECT_FALSE(handed_in.ok());
      refusals += handed_in.error().message + "\n";
    }
    worker->give_back(to, task);
    serve(*worker, end, "w");
  });
  trainer->set_accept([&](const WorkerTask&, const WorkerResult& result) -> Result<TaskBoard::Verdict> {
    if (result.rollout == "wrong") return Error{"is no rollout"};
    end = true;
    return TaskBoard::Verdict::Taken;
  });
  const auto whole = waited_for(*trainer, tasks(*trainer, 1));
  EXPECT_TRUE(whole.ok() && *whole);
  thread.join();
  EXPECT_THAT(refusals, HasSubstr("refuses the result of task 3-0: computed with the kernels avx512; expected avx2"));
  EXPECT_THAT(refusals, HasSubstr("is no rollout"));
}

TEST_F(Transport, AResultOfOtherKernelsIsAcceptedIfTheTrainerAcceptsThem) {
  const NatsServer server(scratch_);
  TaskBoardOptions open = options(server);
  open.kernels = "avx512";
  open.takes_other_kernels = true;
  const auto trainer = board(open);
  const auto worker = source(server);
  std::atomic<bool> end = false;
  std::string kernels;
  trainer->set_accept([&](const WorkerTask&, const WorkerResult& result) {
    kernels = result.kernels;
    return TaskBoard::Verdict::Taken;
  });
  std::thread thread([&] { serve(*worker, end, "worker"); });
  const auto whole = waited_for(*trainer, tasks(*trainer, 1));
  EXPECT_TRUE(whole.ok() && *whole);
  end = true;
  thread.join();
  EXPECT_EQ(kernels, "avx2") << "the result says who sampled";
}

TEST_F(Transport, AStaleResultIsDroppedAndItsTaskIsRepeatedWithTheCurrentWeights) {
  const NatsServer server(scratch_);
  const auto trainer = board(options(server));
  const auto worker = source(server);
  trainer->set_weights(4, trainer->files().add("the current weights"));
  std::atomic<bool> end = false;
  std::vector<std::int64_t> versions;
  trainer->set_accept([&](const WorkerTask& task, const WorkerResult&) {
    versions.push_back(task.version);
    return task.version < 4 ? TaskBoard::Verdict::Again : TaskBoard::Verdict::Taken;
  });
  std::thread thread([&] { serve(*worker, end, "worker"); });
  const auto whole = waited_for(*trainer, tasks(*trainer, 1));
  EXPECT_TRUE(whole.ok() && *whole);
  end = true;
  thread.join();
  EXPECT_THAT(versions, ::testing::ElementsAre(0, 4));
}

/// A trainer that only counts its steps, and a worker that takes available tasks at once.
TEST_F(Transport, StepsAreRolledOutAheadAsFarAsTheBoundAllows) {
  constexpr std::int64_t kSteps = 6;
  const NatsServer server(scratch_);
  for (const std::int64_t max : {0, 1, 3}) {
    const auto trainer = board(options(server));
    const auto worker = source(server);
    std::mutex mutex;
    std::vector<std::int64_t> steps, versions;  // of the results, in the order in which they come
    trainer->set_accept([&](const WorkerTask& task, const WorkerResult&) {
      const std::lock_guard lock(mutex);
      steps.push_back(task.step);
      versions.push_back(task.version);
      return TaskBoard::Verdict::Taken;
    });
    const auto num_results = [&] {
      const std::lock_guard lock(mutex);
      return static_cast<std::int64_t>(steps.size());
    };
    std::atomic<bool> end = false;
    std::thread thread([&] { serve(*worker, end, "worker"); });
    StalenessBound bound(max, kSteps);
    std::int64_t handed_out = 0;
    for (std::int64_t step = 0; step < kSteps; ++step) {
      bound.begin(step, 10 * step);
      std::vector<WorkerTask> due;
      for (; handed_out < bound.handed_out_before(); ++handed_out)
        due.push_back({.run = trainer->run(), .step = handed_out, .version = 10 * step, .weights = kHash});
      trainer->hand_out(due);
      const WorkerTask own{.run = trainer->run(), .step = step};
      EXPECT_TRUE(trainer->wait_for({own}, kAlways, nullptr).value());
      // The update is slow: whatever may be rolled out meanwhile is.
      while (num_results() < bound.handed_out_before()) std::this_thread::sleep_for(milliseconds(2));
    }
    end = true;
    thread.join();
    ASSERT_EQ(num_results(), kSteps);
    for (std::int64_t step = 0; step < kSteps; ++step) {
      const auto at = static_cast<std::size_t>(step);
      EXPECT_EQ(steps[at], step) << "earlier steps first";
      EXPECT_EQ(versions[at], 10 * std::max<std::int64_t>(0, step - max)) << "with " << max;
    }
  }
}

TEST_F(Transport, ASecondTrainerTakesOverAndTheFirstSaysSo) {
  const NatsServer server(scratch_);
  auto first = board(options(server));
  std::string said;
  std::thread thread([&] {
    const auto whole = waited_for(*first, tasks(*first, 1));
    EXPECT_FALSE(whole.ok());
    said = whole.error().message;
  });
  const auto second = board(options(server));
  thread.join();
  EXPECT_THAT(said, HasSubstr("another trainer (" + this_place() + ") has taken " + server.address()));
  first.reset();
  const Announcement last = announced(*source(server));
  EXPECT_EQ(last.run, second->run()) << "the end of the first one";
  EXPECT_TRUE(last.open);
}

TEST_F(Transport, ARestartedBrokerWithAnOldAnnouncementGetsTheNewOne) {
  const NatsServer server(scratch_);
  const auto worker = source(server);
  auto earlier = board(options(server));
  const Announcement of_earlier = announced(*worker);
  earlier.reset();
  const auto latest = board(options(server));
  const Announcement now = announced(*worker);
  Announcement of_earlier_weights = now;
  of_earlier_weights.version = 4;
  of_earlier_weights.weights = now.setup;
  const auto address = parse_broker_address(server.address(), "test").value();
  const auto broker = Broker::connect({.url = address.server, .name = "x"}, kAlways).value();
  for (const Announcement& old : {of_earlier, of_earlier_weights}) {
    ASSERT_TRUE(broker->announce(address.table(), "trainer", announcement_json(old))->reached);
    std::atomic<bool> end = false;
    std::thread thread([&] {
      while (!end && announcement_json(announced(*worker)) != announcement_json(now))
        std::this_thread::sleep_for(milliseconds(20));
      serve(*worker, end, "worker");
    });
    EXPECT_EQ(collected(*latest, 3), expected(3));
    end = true;
    thread.join();
  }
}

TEST_F(Transport, TheEndOfATrainerIsAnnounced) {
  const NatsServer server(scratch_);
  auto trainer = board(options(server));
  const auto worker = source(server);
  EXPECT_TRUE(announced(*worker).open);
  trainer.reset();
  EXPECT_FALSE(announced(*worker).open);
}

}  // namespace
}  // namespace carnot::testing
