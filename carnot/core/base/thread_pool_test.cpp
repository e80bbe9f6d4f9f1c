#include "carnot/core/base/thread_pool.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "testing/thread_limit.h"

namespace carnot {
namespace {

TEST(ThreadPool, CallsEveryIndexOnce) {
  ThreadPool pool(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::atomic<int>> calls(37);
    pool.run(37, [&](std::int64_t i) { ++calls[i]; });
    for (const auto& n : calls) ASSERT_EQ(n.load(), 1);
  }
}

TEST(ThreadPool, RethrowsAndStaysUsable) {
  ThreadPool pool(2);
  EXPECT_THROW(pool.run(8,
                        [](std::int64_t i) {
                          if (i == 5) throw std::runtime_error("five");
                        }),
               std::runtime_error);
  std::atomic<int> calls = 0;
  pool.run(8, [&](std::int64_t) { ++calls; });
  EXPECT_EQ(calls.load(), 8);
}

TEST(ThreadPool, TwoCallersAtOnceBothFinish) {
  ThreadPool pool(2);
  std::atomic<int> calls = 0;
  ThreadPool callers(2);
  callers.run(2, [&](std::int64_t) {
    for (int i = 0; i < 100; ++i) pool.run(10, [&](std::int64_t) { ++calls; });
  });
  EXPECT_EQ(calls.load(), 2000);
}

/// Runs a loop in which the caller and the one worker of a pool of two meet: each calls its function once.
template <class Caller, class Worker>
void meet(ThreadPool& pool, const Caller& of_caller, const Worker& of_worker) {
  std::atomic<bool> worker_is_inside = false;
  const auto caller = std::this_thread::get_id();
  pool.run(2, [&](std::int64_t) {
    if (std::this_thread::get_id() == caller) {
      while (!worker_is_inside) std::this_thread::yield();
      of_caller();
    } else {
      worker_is_inside = true;
      of_worker();
    }
  });
}

std::int64_t times_slept() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

TEST(ThreadPool, ACallerThatWaitsSleeps) {
  ThreadPool pool(2);
  std::int64_t before = 0;
  meet(pool, [&] { before = times_slept(); }, [] { std::this_thread::sleep_for(std::chrono::milliseconds(300)); });
  EXPECT_GT(times_slept(), before) << "it kept its processor all the while";
}

std::atomic<bool> worker_is_held, worker_may_go;

void hold_worker(int) {
  worker_is_held = true;
  while (!worker_may_go) usleep(1000);
}

bool sleeps(long thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string number, name, state;
  file >> number >> name >> state;
  return state == "S";
}

// A signal handler blocks the worker at an arbitrary place, as if it got no processor time.
TEST(ThreadPool, ACallerDoesTheWorkOfAWorkerThatIsNotScheduled) {
  ThreadPool pool(2);
  pthread_t worker{};
  long worker_number = 0;
  meet(
      pool, [] {},
      [&] {
        worker = pthread_self();
        worker_number = syscall(SYS_gettid);
      });
  while (!sleeps(worker_number)) std::this_thread::yield();
  worker_is_held = worker_may_go = false;
  std::signal(SIGUSR1, hold_worker);
  pthread_kill(worker, SIGUSR1);
  while (!worker_is_held) std::this_thread::yield();

  std::atomic<bool> finished = false;
  std::thread rescue([&] {
    for (int i = 0; i < 1000 && !finished; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    worker_may_go = true;
  });
  int calls = 0;
  pool.run(50, [&](std::int64_t) { ++calls; });
  EXPECT_FALSE(worker_may_go) << "the caller waited for a worker that had begun nothing";
  EXPECT_EQ(calls, 50);
  finished = true;
  rescue.join();
  std::signal(SIGUSR1, SIG_DFL);
}

TEST(ThreadPool, ThreadsThatCannotStartAreAnErrorAndLeaveThePoolUnchanged) {
  const auto start_too_many = [] {
    if (!testing::limit_new_threads(1)) std::_Exit(3);
    try {
      set_num_threads(3);
    } catch (const std::system_error& error) {
      std::fputs(error.what(), stderr);
      std::atomic<int> calls = 0;
      kernel_pool().run(5, [&](std::int64_t) { ++calls; });
      std::_Exit(calls == 5 ? 0 : 1);
    }
    std::_Exit(2);
  };
  EXPECT_EXIT(start_too_many(), ::testing::ExitedWithCode(0),
              "only [12] of 3 threads can run: Resource temporarily unavailable");
}

}  // namespace
}  // namespace carnot
