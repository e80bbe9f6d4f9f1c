// testing/hang.h -- calls that hang until the test ends.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

namespace carnot::testing {

/// Declare it before what makes the calls. Its destructor releases them, and waits until they have returned.
class Hang {
 public:
  ~Hang() {
    state_->over = true;
    while (state_->inside > 0) pause();
  }

  std::function<void()> call() const {
    return [state = state_] {
      ++state->begun;
      ++state->inside;
      while (!state->over) pause();
      --state->inside;
    };
  }
  int begun() const { return state_->begun; }
  int inside() const { return state_->inside; }
  void wait_until_inside() const {
    while (inside() == 0) pause();
  }

 private:
  struct State {
    std::atomic<bool> over = false;
    std::atomic<int> begun = 0, inside = 0;
  };
  static void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace carnot::testing
