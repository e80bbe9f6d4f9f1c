#include "carnot/core/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "carnot/core/base/check.h"

namespace carnot {

void ScheduleOptions::fields(FieldVisitor& visit) {
  visit.field("learning_rate", learning_rate, "peak learning rate", at_least(0));
  visit.field("warmup_steps", warmup_steps, "steps over which the rate rises linearly to its peak", count_from(0));
  visit.field("decay", decay, "shape of the decay after the warm-up", one_of({"constant", "linear", "cosine"}));
  visit.field("decay_start", decay_start, "share of the steps after which the decay begins", between(0, 1));
  visit.field("final_share", final_share, "share of the peak that is left at the last step", between(0, 1));
}

double learning_rate_at(const ScheduleOptions& schedule, std::int64_t step, std::int64_t steps) {
  CARNOT_CHECK_GE(step, 0);
  if (step < schedule.warmup_steps)
    return schedule.learning_rate * static_cast<double>(step + 1) / static_cast<double>(schedule.warmup_steps);
  if (schedule.decay == "constant") return schedule.learning_rate;

  const auto last = static_cast<double>(steps - 1);
  const double begin = std::max(schedule.decay_start * last, static_cast<double>(schedule.warmup_steps));
  if (static_cast<double>(step) <= begin) return schedule.learning_rate;
  const double progress = std::min(1.0, (static_cast<double>(step) - begin) / (last - begin));
  const double left = schedule.decay == "linear" ? 1 - progress : (1 + std::cos(std::numbers::pi * progress)) / 2;
  return schedule.learning_rate * (schedule.final_share + (1 - schedule.final_share) * left);
}

}  // namespace carnot
