#include "carnot/core/base/thread_pool.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "carnot/core/base/check.h"

namespace carnot {
namespace {

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Spins for at most kSpinTime. True once `done()` is.
template <class Done>
bool spin_until(const Done& done) {
  using Clock = std::chrono::steady_clock;
  constexpr int kLooksPerClock = 16;
  const auto end = Clock::now() + ThreadPool::kSpinTime;
  do {
    for (int look = 0; look < kLooksPerClock; ++look) {
      if (done()) return true;
      relax();
    }
  } while (Clock::now() < end);
  return false;
}

/// The entrance to a loop, in one atomic word: how many workers are inside, whether more can enter, and the loop's
/// number. Loop and body change only while the gate is closed and empty.
class Gate {
 public:
  void open() { word_.store((word_.load() & ~kNumberBits) + kLoop + kOpen); }

  void close() { word_.fetch_and(~kOpen); }

  /// Whether a loop other than number `seen` is open.
  bool has_other_than(std::uint64_t seen) const {
    const std::uint64_t word = word_.load();
    return (word & kOpen) != 0 && loop_of(word) != seen;
  }

  /// Enters the open loop and stores its number in `seen`. False if it has closed meanwhile.
  bool enter(std::uint64_t& seen) {
    std::uint64_t word = word_.load();
    do {
      if ((word & kOpen) == 0) return false;
    } while (!word_.compare_exchange_weak(word, word + 1));
    seen = loop_of(word);
    return true;
  }

  /// True for the last one out of a closed loop.
  bool leave() { return (word_.fetch_sub(1) & kNumberBits) == 1; }

  bool empty() const { return (word_.load() & (kOpen - 1)) == 0; }

 private:
  static constexpr std::uint64_t kOpen = 1U << 16;
  static constexpr std::uint64_t kLoop = kOpen << 1;
  static constexpr std::uint64_t kNumberBits = kLoop - 1;  // inside, and the open bit

  static std::uint64_t loop_of(std::uint64_t word) { return word / kLoop; }

  std::atomic<std::uint64_t> word_{0};
};

}  // namespace

struct ThreadPool::State {
  std::vector<std::thread> workers;
  std::mutex caller;
  Gate gate;
  std::atomic<bool> stop{false};
  std::mutex sleep;  // for threads that wait for a loop and for its end
  std::condition_variable opened, emptied;

  std::int64_t count = 0;
  const std::function<void(std::int64_t)>* body = nullptr;
  std::atomic<std::int64_t> next{0};
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

  void wait_for_loop(std::uint64_t seen) {
    const auto due = [&] { return gate.has_other_than(seen) || stop.load(); };
    if (spin_until(due)) return;
    std::unique_lock lock(sleep);
    opened.wait(lock, due);
  }

  void wait_until_empty() {
    const auto due = [&] { return gate.empty(); };
    if (due() || spin_until(due)) return;
    std::unique_lock lock(sleep);
    emptied.wait(lock, due);
  }

  /// Ensures that a thread that checked before the change is either asleep, and notified, or checks again.
  void wake(std::condition_variable& sleepers) {
    {
      const std::lock_guard lock(sleep);
    }
    sleepers.notify_all();
  }

  void work() {
    std::uint64_t seen = 0;
    for (wait_for_loop(seen); !stop.load(); wait_for_loop(seen)) {
      if (!gate.enter(seen)) continue;
      drain();
      if (gate.leave()) wake(emptied);
    }
  }

  void end_workers() {
    stop = true;
    wake(opened);
    for (std::thread& worker : workers) worker.join();
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  CARNOT_CHECK_GE(threads, 1);
  CARNOT_CHECK_LE(threads, kMaxThreads);
  try {
    for (int i = 1; i < threads; ++i) state_->workers.emplace_back([state = state_.get()] { state->work(); });
  } catch (const std::system_error& error) {
    const std::size_t started = state_->workers.size() + 1;
    state_->end_workers();
    throw std::system_error(error.code(),
                            "only " + std::to_string(started) + " of " + std::to_string(threads) + " threads can run");
  }
}

ThreadPool::~ThreadPool() { state_->end_workers(); }

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
  state_->gate.open();
  state_->wake(state_->opened);
  state_->drain();
  state_->gate.close();
  state_->wait_until_empty();
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
