#include "carnot/core/run/pace.h"

#include <algorithm>

namespace carnot {

void Pace::update(std::int64_t done, double now) {
  done_ = std::clamp(done, first_, std::max(first_, total_));
  updated_ = now;
}

std::optional<double> Pace::seconds_left(double now) const {
  if (done_ == first_ || done_ >= total_) return std::nullopt;
  const double seconds_a_unit = (updated_ - began_) / static_cast<double>(done_ - first_);
  return std::max(0.0, seconds_a_unit * static_cast<double>(total_ - done_) - (now - updated_));
}

}  // namespace carnot
