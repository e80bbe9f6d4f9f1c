// alarm/entries.h -- what each alarm of the table (alarms.cpp) reads.
#pragma once

#include "carnot/core/alarm/reading.h"

namespace carnot {

// signal_alarms.cpp
std::optional<Reading> read_no_signal(const AlarmInput& input);
std::optional<Reading> read_equal_groups(const AlarmInput& input);
std::optional<Reading> read_duplicate_tasks(const AlarmInput& input);
std::optional<Reading> read_starts_hopeless(const AlarmInput& input);
std::optional<Reading> read_starts_solved(const AlarmInput& input);
std::optional<Reading> read_falling_evaluation(const AlarmInput& input);

// update_alarms.cpp
std::optional<Reading> read_low_entropy(const AlarmInput& input);
std::optional<Reading> read_high_entropy(const AlarmInput& input);
std::optional<Reading> read_zero_gradient(const AlarmInput& input);
std::optional<Reading> read_bad_gradient(const AlarmInput& input);
std::optional<Reading> read_clipped_gradient(const AlarmInput& input);
std::optional<Reading> read_high_kl(const AlarmInput& input);
std::optional<Reading> read_policy_mismatch(const AlarmInput& input);
std::optional<Reading> read_kernel_mismatch(const AlarmInput& input);
std::optional<Reading> read_stale_rollouts(const AlarmInput& input);

// environment_alarms.cpp
std::optional<Reading> read_truncated(const AlarmInput& input);
std::optional<Reading> read_bad_format(const AlarmInput& input);
std::optional<Reading> read_tool_errors(const AlarmInput& input);
std::optional<Reading> read_failing_environment(const AlarmInput& input);
std::optional<Reading> read_slow_environment(const AlarmInput& input);

}  // namespace carnot
