#include "carnot/base/thread_pool.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "carnot/base/check.h"

namespace carnot {
namespace {

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// About 20 microseconds: longer than the gap between two kernels of a layer, shorter than a wake-up.
constexpr int kSpins = 4000;

}  // namespace

struct ThreadPool::State {
  std::vector<std::thread> workers;
  std::mutex mutex;
  std::condition_variable wake;
  std::mutex caller;
  std::atomic<std::uint64_t> generation{0};
  std::atomic<bool> stop{false};
  std::atomic<int> busy{0};
  std::atomic<std::int64_t> next{0};
  std::int64_t count = 0;
  const std::function<void(std::int64_t)>* body = nullptr;
  std::mutex failure_mutex;
  std::exception_ptr failure;

  void drain() {
    for (std::int64_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) {
      try {
        (*body)(i);
      } catch (...) {
        const std::lock_guard lock(failure_mutex);
        if (!failure) failure = std::current_exception();
      }
    }
  }

  bool wait_for_work(std::uint64_t seen) {
    for (int spin = 0; spin < kSpins; ++spin) {
      if (generation.load(std::memory_order_acquire) != seen || stop.load()) return !stop.load();
      relax();
    }
    std::unique_lock lock(mutex);
    wake.wait(lock, [&] { return generation.load() != seen || stop.load(); });
    return !stop.load();
  }

  void work() {
    std::uint64_t seen = 0;
    while (wait_for_work(seen)) {
      seen = generation.load(std::memory_order_acquire);
      drain();
      busy.fetch_sub(1, std::memory_order_release);
    }
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  CARNOT_CHECK_GE(threads, 1);
  for (int i = 1; i < threads; ++i) state_->workers.emplace_back([state = state_.get()] { state->work(); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->wake.notify_all();
  for (std::thread& worker : state_->workers) worker.join();
}

int ThreadPool::threads() const { return static_cast<int>(state_->workers.size()) + 1; }

void ThreadPool::run(std::int64_t count, const std::function<void(std::int64_t)>& body) {
  const std::unique_lock alone(state_->caller, std::try_to_lock);
  if (count <= 1 || state_->workers.empty() || !alone.owns_lock()) {
    for (std::int64_t i = 0; i < count; ++i) body(i);
    return;
  }
  state_->count = count;
  state_->body = &body;
  state_->next = 0;
  state_->failure = nullptr;
  state_->busy = static_cast<int>(state_->workers.size());
  {
    const std::lock_guard lock(state_->mutex);
    state_->generation.fetch_add(1, std::memory_order_release);
  }
  state_->wake.notify_all();
  state_->drain();
  for (int spin = 0; state_->busy.load(std::memory_order_acquire) > 0; ++spin) {
    // A worker that lost its processor needs ours.
    spin < kSpins ? relax() : std::this_thread::yield();
  }
  if (state_->failure) std::rethrow_exception(state_->failure);
}

namespace {

std::unique_ptr<ThreadPool>& pool_slot() {
  static std::unique_ptr<ThreadPool> pool = std::make_unique<ThreadPool>(1);
  return pool;
}

}  // namespace

ThreadPool& kernel_pool() { return *pool_slot(); }

void set_num_threads(int threads) { pool_slot() = std::make_unique<ThreadPool>(threads); }

}  // namespace carnot
