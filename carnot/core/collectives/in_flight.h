// collectives/in_flight.h -- a few collectives under way at a time, and what is done with their results.
#pragma once

#include <ATen/core/Tensor.h>

#include <deque>
#include <functional>
#include <memory>

#include "carnot/core/collectives/collectives.h"

namespace carnot {

class InFlight {
 public:
  /// So many at a time: what they hold is bounded.
  static constexpr int kMost = 4;

  using Then = std::function<void(const at::Tensor& result)>;

  /// Before one is begun, and its memory is taken: continues with those that have ended, and waits for the oldest where
  /// there are kMost.
  void make_room();

  /// Goes on with those that have ended. False if there are kMost still.
  bool has_room();

  /// Calls then(result) at a later call of this class, in the order in which they were added.
  void add(Collectives::Begun begun, Then then);

  /// Waits for all.
  void finish();

 private:
  struct One {
    Collectives::Begun begun;
    Then then;
  };
  void finish_oldest();

  std::deque<One> all_;
};

}  // namespace carnot
