// base/thread_pool.h -- splits a loop over a few threads that wait briefly before they sleep.
//
// Results must not depend on the number of threads: a body writes only what belongs to its own indices, and
// the caller adds up sums in a fixed order. Not reentrant: a body must not call run() on the same pool.
//
// On a busy machine: the caller works through the loop itself and waits only for indices that a worker has begun,
// never for a worker to wake up. A waiting thread spins for kSpinTime and then sleeps.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

namespace carnot {

/// The most threads that any option may ask for.
inline constexpr int kMaxThreads = 256;

class ThreadPool {
 public:
  /// How long a waiting thread spins: longer than the gap between two kernels of a layer, shorter than a wake-up and
  /// far shorter than the time slice that another process would get.
  static constexpr std::chrono::microseconds kSpinTime{20};

  /// Starts `threads` - 1 workers; the caller of run() is the last one. If one cannot be started, the others are
  /// stopped and std::system_error says how many were running. REQUIRES: 1 <= threads <= kMaxThreads.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  /// Calls body(i) once for each i in [0, count), each on some thread; returns when all are done. The first exception
  /// is rethrown here. Workers serve one caller at a time; a second caller runs its loop alone.
  void run(std::int64_t count, const std::function<void(std::int64_t)>& body);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The pool that kernels use. set_num_threads replaces it; call it while no kernel runs. If the threads cannot be
/// started, it throws as ThreadPool does and keeps the old pool.
ThreadPool& kernel_pool();
void set_num_threads(int threads);

}  // namespace carnot
