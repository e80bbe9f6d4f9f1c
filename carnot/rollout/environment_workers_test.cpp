#include "carnot/rollout/environment_workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>
#include <thread>

namespace carnot {
namespace {

using std::chrono::milliseconds;

TEST(EnvironmentWorkers, ReturnsEveryCallOnce) {
  EnvironmentWorkers workers(3, 10);
  const auto sum = std::make_shared<std::atomic<int>>(0);
  for (int i = 0; i < 50; ++i) workers.submit(i, [sum, i] { *sum += i; });
  std::set<std::int64_t> tags;
  while (workers.pending() > 0)
    for (const FinishedCall& call : workers.collect(true)) {
      EXPECT_EQ(call.status, FinishedCall::Status::Returned);
      EXPECT_TRUE(tags.insert(call.tag).second);
    }
  EXPECT_EQ(tags.size(), 50u);
  EXPECT_EQ(*sum, 49 * 50 / 2);
  EXPECT_TRUE(workers.collect(true).empty()) << "nothing is under way: no wait";
}

TEST(EnvironmentWorkers, ReportsWhatACallThrew) {
  EnvironmentWorkers workers(1, 10);
  workers.submit(1, [] { throw std::runtime_error("flood"); });
  workers.submit(2, [] { throw 3; });
  std::vector<std::string> messages;
  while (workers.pending() > 0)
    for (const FinishedCall& call : workers.collect(true)) {
      EXPECT_EQ(call.status, FinishedCall::Status::Threw);
      messages.push_back(call.message);
    }
  EXPECT_THAT(messages, ::testing::ElementsAre("flood", "an exception without a message"));
}

TEST(EnvironmentWorkers, ReplacesAThreadThatMissesItsDeadline) {
  EnvironmentWorkers workers(1, 0.05);
  for (int i = 0; i < 3; ++i) workers.submit(i, [] { std::this_thread::sleep_for(milliseconds(1500)); });
  workers.submit(3, [] {});
  std::vector<FinishedCall> calls;
  const auto start = std::chrono::steady_clock::now();
  while (workers.pending() > 0)
    for (const FinishedCall& call : workers.collect(true)) calls.push_back(call);
  EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(1200));
  ASSERT_EQ(calls.size(), 4u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(calls[i].status, FinishedCall::Status::TimedOut);
  EXPECT_EQ(calls[3].tag, 3);
  EXPECT_EQ(calls[3].status, FinishedCall::Status::Returned) << "a call that waited in the queue has its whole time";
}

TEST(EnvironmentWorkers, LeavesWithoutWaitingForACallThatHangs) {
  const auto start = std::chrono::steady_clock::now();
  {
    EnvironmentWorkers workers(2, 10);
    workers.submit(0, [] { std::this_thread::sleep_for(milliseconds(1500)); });
    std::this_thread::sleep_for(milliseconds(30));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(1000));
}

TEST(EnvironmentWorkers, ForgetWhatNoThreadHasTakenUp) {
  EnvironmentWorkers workers(1, 10);
  const auto begun = std::make_shared<std::atomic<int>>(0);
  for (int i = 0; i < 5; ++i)
    workers.submit(i, [begun] {
      ++*begun;
      std::this_thread::sleep_for(milliseconds(30));
    });
  while (*begun == 0) std::this_thread::sleep_for(milliseconds(1));
  workers.drop_queued();
  EXPECT_EQ(workers.pending(), 1);
  while (workers.pending() > 0) workers.collect(true);
  EXPECT_EQ(*begun, 1);
}

TEST(EnvironmentWorkers, AreWaitedForAMomentOnly) {
  EnvironmentWorkers workers(1, 10);
  workers.submit(0, [] { std::this_thread::sleep_for(milliseconds(1500)); });
  EXPECT_TRUE(workers.collect(true).empty());
  EXPECT_EQ(workers.pending(), 1);
}

}  // namespace
}  // namespace carnot
