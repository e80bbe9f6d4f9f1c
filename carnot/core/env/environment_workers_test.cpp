#include "carnot/core/env/environment_workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <latch>
#include <set>
#include <stdexcept>
#include <thread>

#include "carnot/core/base/check.h"
#include "testing/hang.h"
#include "testing/thread_limit.h"

namespace carnot {
namespace {

using std::chrono::milliseconds;
using testing::Hang;

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

TEST(EnvironmentWorkers, LetAsManyCallsWaitAtOnceAsThereMayBeThreads) {
  constexpr int kCalls = 300;
  const auto all_are_here = std::make_shared<std::latch>(kCalls);
  EnvironmentWorkers workers(kCalls, 60);
  for (int i = 0; i < kCalls; ++i) workers.submit(i, [all_are_here] { all_are_here->arrive_and_wait(); });
  int returned = 0;
  while (workers.pending() > 0)
    for (const FinishedCall& call : workers.collect(true)) returned += call.status == FinishedCall::Status::Returned;
  EXPECT_EQ(returned, kCalls);
}

TEST(EnvironmentWorkers, StartNoFurtherThreadWhileOneIsIdle) {
  EnvironmentWorkers workers(100, 10);
  const auto threads = std::make_shared<std::set<std::thread::id>>();
  for (int i = 0; i < 50; ++i) {
    workers.submit(i, [threads] { threads->insert(std::this_thread::get_id()); });
    while (workers.pending() > 0) workers.collect(true);
  }
  EXPECT_EQ(threads->size(), 1u);
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
  const Hang hang;
  EnvironmentWorkers workers(1, 1);
  for (int i = 0; i < 2; ++i) workers.submit(i, hang.call());
  workers.submit(2, [] {});
  std::vector<FinishedCall> calls;
  while (workers.pending() > 0)
    for (const FinishedCall& call : workers.collect(true)) calls.push_back(call);
  ASSERT_EQ(calls.size(), 3u);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(calls[i].status, FinishedCall::Status::TimedOut);
  EXPECT_EQ(hang.inside(), 2) << "no one waited for them";
  EXPECT_EQ(calls[2].tag, 2);
  EXPECT_EQ(calls[2].status, FinishedCall::Status::Returned) << "a call that waited in the queue has its whole time";
}

TEST(EnvironmentWorkers, LeavesWithoutWaitingForACallThatHangs) {
  const Hang hang;
  {
    EnvironmentWorkers workers(2, 10);
    workers.submit(0, hang.call());
    hang.wait_until_inside();
  }
  EXPECT_EQ(hang.inside(), 1);
}

TEST(EnvironmentWorkers, ForgetWhatNoThreadHasTakenUp) {
  EnvironmentWorkers workers(1, 10);
  const auto begun = std::make_shared<std::atomic<int>>(0);
  const auto go_on = std::make_shared<std::latch>(1);
  for (int i = 0; i < 5; ++i)
    workers.submit(i, [begun, go_on] {
      ++*begun;
      go_on->wait();
    });
  while (*begun == 0) std::this_thread::sleep_for(milliseconds(1));
  workers.drop_queued();
  EXPECT_EQ(workers.pending(), 1);
  go_on->count_down();
  while (workers.pending() > 0) workers.collect(true);
  EXPECT_EQ(*begun, 1);
}

TEST(EnvironmentWorkers, AreWaitedForOnlyBriefly) {
  const Hang hang;
  EnvironmentWorkers workers(1, 600);
  workers.submit(0, hang.call());
  EXPECT_TRUE(workers.collect(true).empty());
  EXPECT_EQ(workers.pending(), 1);
}

TEST(EnvironmentWorkers, ABugInACallIsRethrownAndIsNotAFailureOfTheWorld) {
  EnvironmentWorkers workers(1, 10);
  workers.submit(1, [] { CARNOT_CHECK_EQ(1 + 1, 3); });
  try {
    while (workers.pending() > 0) workers.collect(true);
    FAIL() << "nothing was thrown";
  } catch (const CheckError& bug) {
    EXPECT_THAT(bug.what(), ::testing::HasSubstr("1 + 1 == 3 (2 and 3)"));
  }
}

TEST(EnvironmentWorkers, ReplaceHangingThreadsUpToACapAndRefuseCallsBehindIt) {
  std::vector<FinishedCall> calls;
  {
    const Hang hang;
    EnvironmentWorkers workers(2, 0.02);
    constexpr int kCalls = kMaxHangingCalls + 20;
    for (int i = 0; i < kCalls; ++i) workers.submit(i, hang.call());
    while (workers.pending() > 0)
      for (FinishedCall& call : workers.collect(true)) calls.push_back(std::move(call));
    EXPECT_EQ(calls.size(), static_cast<std::size_t>(kCalls));
    const auto hung = std::count_if(calls.begin(), calls.end(), [](const FinishedCall& call) {
      return call.status == FinishedCall::Status::TimedOut;
    });
    EXPECT_GE(hung, kMaxHangingCalls - 5) << "five calls of other tests may hang still";
    EXPECT_LE(hung, kMaxHangingCalls + 1) << "the second of the two threads may hang as well";
    EXPECT_LE(hang.inside(), kMaxHangingCalls + 1);
    EXPECT_EQ(calls.back().status, FinishedCall::Status::Refused);
    EXPECT_THAT(calls.back().message, ::testing::HasSubstr("calls of environments hang, each on its own thread"));
  }
  auto status = FinishedCall::Status::Refused;
  for (int attempt = 0; attempt < 500 && status == FinishedCall::Status::Refused; ++attempt) {
    std::this_thread::sleep_for(milliseconds(10));
    EnvironmentWorkers workers(1, 10);
    workers.submit(0, [] {});
    while (workers.pending() > 0)
      for (const FinishedCall& call : workers.collect(true)) status = call.status;
  }
  EXPECT_EQ(status, FinishedCall::Status::Returned) << "once the others have come back";
}

#if !defined(__SANITIZE_THREAD__)  // which has its own thread, and starts none in a fork
TEST(EnvironmentWorkers, WithoutAnyThreadRefuseCallsAndWithFewDoThemAll) {
  const auto run_with = [](int threads) {
    if (!testing::limit_new_threads(threads)) std::_Exit(3);
    EnvironmentWorkers workers(3, 0.05);
    const auto expected = threads > 0 ? FinishedCall::Status::Returned : FinishedCall::Status::Refused;
    for (int i = 0; i < 5; ++i) workers.submit(i, [] {});
    while (workers.pending() > 0)
      for (const FinishedCall& call : workers.collect(true)) {
        std::fputs((call.message + "\n").c_str(), stderr);
        if (call.status != expected) std::_Exit(1);
      }
    // A thread that hangs and cannot be replaced.
    if (threads > 0) workers.submit(5, [] { std::this_thread::sleep_for(milliseconds(500)); });
    while (workers.pending() > 0) workers.collect(true);
  };
  EXPECT_EXIT((run_with(0), std::_Exit(0)), ::testing::ExitedWithCode(0),
              "no thread can be started: Resource temporarily unavailable");
  if (geteuid() == 0) {
    EXPECT_EXIT((run_with(1), std::_Exit(0)), ::testing::ExitedWithCode(0), "");
  }
}
#endif

}  // namespace
}  // namespace carnot
