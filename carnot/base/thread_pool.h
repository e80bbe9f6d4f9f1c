// base/thread_pool.h -- splits a loop over a few threads that wait briefly before they sleep.
//
// Results may not depend on the number of threads: a body writes only what its own indices own, and sums
// are made in a fixed order by the caller. Not reentrant: a body may not call run() on the same pool.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace carnot {

class ThreadPool {
 public:
  /// Starts `threads` - 1 workers; the caller of run() is the last one. REQUIRES: threads >= 1.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  /// Calls body(i) once for each i in [0, count), each on some thread; returns when all are done. The first
  /// exception is rethrown here. Only one caller at a time is served by the workers; another runs alone.
  void run(std::int64_t count, const std::function<void(std::int64_t)>& body);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The pool that kernels use. set_num_threads replaces it; call it while no kernel runs.
ThreadPool& kernel_pool();
void set_num_threads(int threads);

}  // namespace carnot
