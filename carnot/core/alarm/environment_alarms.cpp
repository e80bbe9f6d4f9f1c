#include <algorithm>

#include "carnot/core/alarm/entries.h"

namespace carnot {

std::optional<Reading> read_truncated(const AlarmInput& input) {
  const auto share = input.metric("response_length/clip_ratio");
  if (!share) return std::nullopt;
  if (*share <= input.options().truncated) return Reading{};
  return Reading{true, in_percent(*share) + " of the trajectories end at a token limit"};
}

std::optional<Reading> read_bad_format(const AlarmInput& input) {
  const auto invalid = input.environment("invalid_action"), format = input.environment("format");
  if (!invalid && !format) return std::nullopt;
  const double without = format ? 1 - *format : 0;
  if (std::max(invalid.value_or(0), without) <= input.options().bad_format) return Reading{};
  if (without > invalid.value_or(0))
    return Reading{true, in_percent(without) + " of the trajectories lack the expected format"};
  return Reading{true, "the environment could not act on " + in_percent(*invalid) + " of the turns"};
}

std::optional<Reading> read_tool_errors(const AlarmInput& input) {
  const auto share = input.metric("tool_call_errors");
  if (!share) return std::nullopt;
  if (*share <= input.options().tool_errors) return Reading{};
  return Reading{true, in_percent(*share) + " of the tool calls failed"};
}

std::optional<Reading> read_failing_environment(const AlarmInput& input) {
  const auto share = input.environment("infra_error");
  if (!share) return std::nullopt;
  if (*share <= input.options().infra_failures) return Reading{};
  return Reading{true, in_percent(*share) + " of the trajectories were lost to infrastructure failures"};
}

std::optional<Reading> read_slow_environment(const AlarmInput& input) {
  const auto waiting = input.metric("timing_s/gen_waiting"), step = input.metric("timing_s/step");
  // Workers wait while the trainer does something else.
  if (!waiting || !step || *step <= 0 || input.metric("timing_s/trainer_idle")) return std::nullopt;
  const double share = *waiting / *step;
  if (share <= input.options().environment_wait) return Reading{};
  return Reading{true,
                 "the step waited for environments during " + in_percent(share) + " of its " + in_words(*step) + " s"};
}

}  // namespace carnot
