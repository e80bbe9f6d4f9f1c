#include "testing/device_emulation.h"

#include <ucontext.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <numeric>
#include <vector>

#include "carnot/core/base/check.h"
#include "carnot/core/base/random.h"

namespace carnot::testing {

EmulatedIndex emulated_thread, emulated_block;

namespace {

constexpr std::size_t kStackBytes = 64 << 10;

/// One block of a launch: a stack for each thread, and the context that lets them run in turn.
class EmulatedBlock {
 public:
  EmulatedBlock(unsigned threads, const std::function<void()>& kernel)
      : kernel_(kernel),
        stacks_(std::make_unique_for_overwrite<std::byte[]>(threads * kStackBytes)),
        threads_(threads) {}

  void run(std::vector<unsigned> order) {
    for (std::size_t i = 0; i < threads_.size(); ++i) prepare(i);
    for (std::size_t ended = 0; ended == 0;) {
      for (const unsigned thread : order) advance(thread);
      if (failure_) std::rethrow_exception(failure_);
      ended = static_cast<std::size_t>(
          std::count_if(threads_.begin(), threads_.end(), [](const Thread& thread) { return thread.ended; }));
      CARNOT_CHECK(ended == 0 || ended == threads_.size(), "a thread ended where others wait at a barrier");
      for (const Thread& thread : threads_) CARNOT_CHECK_EQ(thread.line, threads_[0].line);
    }
  }

  void wait(int line) {
    Thread& own = threads_[running_];
    own.line = line;
    swapcontext(&own.context, &scheduler_);
  }

 private:
  struct Thread {
    ucontext_t context{};
    bool ended = false;
    int line = 0;  ///< of the barrier at which it waits
  };

  void prepare(std::size_t i) {
    ucontext_t& context = threads_[i].context;
    threads_[i].ended = false;
    getcontext(&context);
    context.uc_stack.ss_sp = stacks_.get() + i * kStackBytes;
    context.uc_stack.ss_size = kStackBytes;
    context.uc_link = &scheduler_;
    const auto self = reinterpret_cast<std::uintptr_t>(this);
    makecontext(&context, reinterpret_cast<void (*)()>(&EmulatedBlock::begin), 2, static_cast<unsigned>(self >> 32),
                static_cast<unsigned>(self));
  }

  void advance(unsigned thread) {
    running_ = thread;
    emulated_thread = {.x = thread};
    swapcontext(&scheduler_, &threads_[thread].context);
  }

  static void begin(unsigned high, unsigned low) {
    auto* self = reinterpret_cast<EmulatedBlock*>(std::uintptr_t{high} << 32 | low);
    const std::size_t own = self->running_;
    try {
      self->kernel_();
    } catch (...) {  // may not leave this stack
      self->failure_ = std::current_exception();
    }
    self->threads_[own].ended = true;
    self->threads_[own].line = 0;
  }

  const std::function<void()>& kernel_;
  std::unique_ptr<std::byte[]> stacks_;
  std::vector<Thread> threads_;
  ucontext_t scheduler_{};
  std::size_t running_ = 0;
  std::exception_ptr failure_;
};

EmulatedBlock* running_block = nullptr;

std::vector<unsigned> in_order(unsigned count, ThreadOrder order, RandomStream& random) {
  std::vector<unsigned> all(count);
  std::iota(all.begin(), all.end(), 0u);
  if (order == ThreadOrder::Descending) std::reverse(all.begin(), all.end());
  if (order == ThreadOrder::Shuffled) random.shuffle(all);
  return all;
}

}  // namespace

void emulated_barrier(int line) { running_block->wait(line); }

void emulate_launch(unsigned blocks, unsigned threads, ThreadOrder order, const std::function<void()>& kernel) {
  RandomStream random(blocks);
  EmulatedBlock block(threads, kernel);
  running_block = &block;
  for (const unsigned b : in_order(blocks, order, random)) {
    emulated_block = {.x = b};
    block.run(in_order(threads, order, random));
  }
  running_block = nullptr;
}

}  // namespace carnot::testing
