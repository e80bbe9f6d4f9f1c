// rollout/environment_workers.h -- threads on which environments open and step, each call with a deadline.
//
// A call that does not come back in time is reported as timed out, its thread is left to itself and replaced; what
// it holds stays alive until it ends. One thread submits and collects.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace carnot {

struct FinishedCall {
  enum class Status { Returned, Threw, TimedOut };

  std::int64_t tag = 0;
  Status status = Status::Returned;
  std::string message{};  ///< of the exception or the time-out
  double seconds = 0;     ///< since a thread took it up
};

class EnvironmentWorkers {
 public:
  /// A call may take `timeout_seconds` from when a thread takes it up.
  EnvironmentWorkers(int threads, double timeout_seconds);

  /// Waits for no call: threads that are inside one are left to themselves.
  ~EnvironmentWorkers();
  EnvironmentWorkers(const EnvironmentWorkers&) = delete;
  EnvironmentWorkers& operator=(const EnvironmentWorkers&) = delete;

  /// Queues a call. What it captures must own all it touches; what it writes may be read after Returned or Threw only.
  void submit(std::int64_t tag, std::function<void()> call);

  /// Calls that ended since the last time. With `wait`, waits for one (returned, threw or timed out) where any is under
  /// way, but a tenth of a second at most.
  std::vector<FinishedCall> collect(bool wait);

  /// Forgets the calls that no thread has taken up.
  void drop_queued();

  /// Calls submitted and not yet collected.
  int pending() const { return pending_; }

 private:
  struct State;
  void start_worker();
  void give_up_overdue();

  std::shared_ptr<State> state_;
  int pending_ = 0;
};

}  // namespace carnot
