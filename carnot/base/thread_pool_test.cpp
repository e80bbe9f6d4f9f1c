#include "carnot/base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace carnot {
namespace {

TEST(ThreadPool, CallsEveryIndexOnce) {
  ThreadPool pool(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::atomic<int>> calls(37);
    pool.run(37, [&](std::int64_t i) { ++calls[static_cast<std::size_t>(i)]; });
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

}  // namespace
}  // namespace carnot
