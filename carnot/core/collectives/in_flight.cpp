#include "carnot/core/collectives/in_flight.h"

#include <utility>

namespace carnot {

void InFlight::finish_oldest() {
  const One oldest = std::move(all_.front());
  all_.pop_front();
  oldest.then(oldest.begun->result());
}

void InFlight::make_room() {
  while (!has_room()) finish_oldest();
}

bool InFlight::has_room() {
  while (!all_.empty() && all_.front().begun->has_ended()) finish_oldest();
  return static_cast<int>(all_.size()) < kMost;
}

void InFlight::add(Collectives::Begun begun, Then then) {
  all_.push_back({.begun = std::move(begun), .then = std::move(then)});
}

void InFlight::finish() {
  while (!all_.empty()) finish_oldest();
}

}  // namespace carnot
