#include "carnot/remote_rollouts/transport/staleness.h"

#include <algorithm>

#include "carnot/core/base/check.h"

namespace carnot {

void StalenessBound::begin(std::int64_t step, std::int64_t version) {
  CARNOT_CHECK_GE(step, present_);
  CARNOT_CHECK(last_step_.empty() || version >= last_step_.rbegin()->first, "weights do not become older");
  present_ = step;
  last_step_[version] = step;
}

std::int64_t StalenessBound::handed_out_before() const { return std::min(steps_, present_ + max_ + 1); }

std::int64_t StalenessBound::staleness(std::int64_t step, std::int64_t version) const {
  CARNOT_CHECK(!last_step_.empty(), "no step has begun");
  auto known = last_step_.upper_bound(version);
  if (known != last_step_.begin()) --known;
  return step - known->second;
}

bool StalenessBound::admits(std::int64_t step, std::int64_t version) const {
  return version >= last_step_.begin()->first && staleness(step, version) <= max_;
}

}  // namespace carnot
