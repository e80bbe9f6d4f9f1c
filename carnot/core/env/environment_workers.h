// env/environment_workers.h -- threads on which environments open and step, each call with a deadline.
//
// Threads start when calls wait and all others are busy, so that thousands of episodes may wait for a slow world at
// once and a quick one costs a thread or two. A call that does not come back in time is reported as timed out, its
// thread is left alone and replaced when needed; what it holds stays alive until it ends. Once kMaxHangingCalls
// hang in the process, or where the system starts no further thread, threads are not replaced; with none left, calls
// are refused. One thread submits and collects.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace carnot {

struct FinishedCall {
  enum class Status { Returned, Threw, TimedOut, Refused };

  std::int64_t tag = 0;
  Status status = Status::Returned;
  std::string message{};  ///< of the exception, the time-out or the refusal
  double seconds = 0;     ///< since a thread took it up
};

/// Calls that may hang in this process, each on its own thread, before threads are no longer replaced.
inline constexpr int kMaxHangingCalls = 64;

/// Calls of environments at once. A thread that waits costs about 40 KB.
inline constexpr int kMaxEnvironmentThreads = 16384;

class EnvironmentWorkers {
 public:
  /// A call may take `timeout_seconds` from when a thread takes it up. Where the system starts fewer threads than are
  /// needed and allowed, a warning says so once, and those do all the work.
  /// REQUIRES: 1 <= threads <= kMaxEnvironmentThreads.
  EnvironmentWorkers(int threads, double timeout_seconds);

  /// Waits for no call: threads that are inside one are left to themselves.
  ~EnvironmentWorkers();
  EnvironmentWorkers(const EnvironmentWorkers&) = delete;
  EnvironmentWorkers& operator=(const EnvironmentWorkers&) = delete;

  /// Queues a call. What it captures must own all it touches; what it writes may be read after Returned or Threw only.
  void submit(std::int64_t tag, std::function<void()> call);

  /// Calls that ended since the last time. With `wait`, waits for one (returned, threw, timed out or refused) where any
  /// is under way, but a tenth of a second at most. Rethrows the CheckError of a call: that is a bug, no failure of the
  /// world.
  std::vector<FinishedCall> collect(bool wait);

  /// Forgets the calls that no thread has taken up.
  void drop_queued();

  /// Calls submitted and not yet collected.
  int pending() const { return pending_; }

 private:
  struct State;
  bool start_worker();
  void start_missing();
  void give_up_overdue();
  void refuse_queued();

  std::shared_ptr<State> state_;
  int pending_ = 0;
};

}  // namespace carnot
