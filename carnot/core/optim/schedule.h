// optim/schedule.h -- the learning rate by step.
#pragma once

#include <cstdint>
#include <string>

#include "carnot/core/base/fields.h"

namespace carnot {

/// Linear warm-up, then constant, linear or cosine decay to `final_share` of the peak.
struct ScheduleOptions {
  double learning_rate = 1e-6;
  std::int64_t warmup_steps = 0;
  std::string decay = "constant";  ///< constant | linear | cosine
  double decay_start = 0;          ///< share of the steps after which the decay begins
  double final_share = 0;          ///< of the peak, at the last step

  void fields(FieldVisitor& visit);
};

/// Rate of step `step` (0-based) of `steps`.
double learning_rate_at(const ScheduleOptions& schedule, std::int64_t step, std::int64_t steps);

}  // namespace carnot
