// remote_rollouts/transport.h -- a trainer's task board and workers' sources of tasks at a real NATS server, without
// models.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "carnot/remote_rollouts/transport/task_board.h"
#include "carnot/remote_rollouts/transport/task_source.h"
#include "tests/remote_rollouts/background.h"

namespace carnot::testing {

inline const GoOn kAlways = [] { return true; };
inline const std::string kHash(64, '5');

class Transport : public ::testing::Test {
 protected:
  TaskBoardOptions options(const NatsServer& server, const std::string& key = "") {
    const auto address = parse_broker_address(server.address(), "test").value();
    return {.address = address,
            .broker = {.url = address.server, .name = "trainer"},
            .key = key,
            .lease = std::chrono::milliseconds(1000),
            .kernels = "avx2"};
  }

  std::unique_ptr<TaskBoard> board(const TaskBoardOptions& options) {
    auto made = TaskBoard::open(options, kAlways);
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
    (*made)->set_setup((*made)->files().add("{}"), {});
    EXPECT_TRUE((*made)->announce(kAlways).value());
    return std::move(made).value();
  }

  std::unique_ptr<TaskSource> source(const NatsServer& server, const std::string& key = "") {
    const auto address = parse_broker_address(server.address(), "test").value();
    return TaskSource::connect(address, {.url = address.server, .name = "worker"}, key, kAlways).value();
  }

  /// As announced; waits for an answer from the broker.
  static Announcement announced(TaskSource& source) {
    auto trainer = source.trainer().value();
    while (!trainer) trainer = source.trainer().value();
    return std::move(trainer).value();
  }

  static std::vector<WorkerTask> tasks(const TaskBoard& board, int count) {
    std::vector<WorkerTask> all;
    for (int i = 0; i < count; ++i)
      all.push_back({.run = board.run(), .step = 3, .first_group = static_cast<std::uint64_t>(i), .weights = kHash});
    return all;
  }

  /// Waits until there is one.
  static WorkerTask next_task(TaskSource& source, const Announcement& trainer) {
    auto task = source.next_task(trainer).value();
    while (!task) task = source.next_task(trainer).value();
    return std::move(task).value();
  }

  /// Takes tasks and delivers results until `end`. `before` may delay a task.
  static void serve(
      TaskSource& source, std::atomic<bool>& end, const std::string& name,
      const std::function<bool(int served)>& before = [](int) { return true; }) {
    int served = 0;
    while (!end) {
      const auto leased = source.next_task(announced(source));
      ASSERT_TRUE(leased.ok()) << leased.error().message;
      if (!*leased) continue;
      if (!before(served++)) return;  // as if it died: the task is neither handed in nor given back
      const WorkerTask& task = **leased;
      const auto handed_in = source.hand_in(announced(source), task,
                                            {.worker = name, .kernels = "avx2", .rollout = "result of " + task.key()});
      ASSERT_TRUE(handed_in.ok()) << handed_in.error().message;
    }
  }

  /// Collects `count` tasks; what came, by task.
  static std::vector<std::string> collected(TaskBoard& board, int count) {
    std::vector<std::string> results(static_cast<std::size_t>(count));
    const auto all = tasks(board, count);
    board.set_accept([&](const WorkerTask& task, const WorkerResult& result) {
      EXPECT_TRUE(results[task.first_group].empty()) << "a second result of one task";
      results[task.first_group] = result.rollout;
      return TaskBoard::Verdict::Taken;
    });
    const auto whole = waited_for(board, all);
    EXPECT_TRUE(whole.ok() && *whole) << (whole.ok() ? "stopped" : whole.error().message);
    return results;
  }

  /// Publishes them and waits for their results.
  static Result<bool> waited_for(TaskBoard& board, const std::vector<WorkerTask>& all) {
    board.hand_out(all);
    return board.wait_for(all, kAlways, nullptr);
  }

  static std::vector<std::string> expected(int count) {
    std::vector<std::string> all;
    for (int i = 0; i < count; ++i) all.push_back("result of 3-" + std::to_string(i));
    return all;
  }

  const ScratchFolder scratch_;
};

}  // namespace carnot::testing
