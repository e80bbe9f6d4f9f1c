// alarm/reading.h -- what an alarm reads after a step, and what it says of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "carnot/core/alarm/options.h"

namespace carnot {

/// What the alarms must know of a run besides its metrics.
struct AlarmSetting {
  AlarmOptions options{};
  std::string environment{};
  std::string evaluation{};     ///< metric with the success in evaluations: val-core/NAME/success/mean@N
  double max_grad_norm = 1;     ///< train.max_grad_norm
  bool one_kernel_set = false;  ///< rollout and trainer compute the same bits (docs/numerics.md)
};

/// What alarms keep from step to step, by NAME/WHAT. Finite numbers, which a checkpoint stores.
using AlarmMemory = std::map<std::string, double>;

struct AlarmInput {
  const AlarmSetting& setting;
  std::int64_t step;  ///< steps that are complete; 0: `metrics` are those of the evaluation before training
  const std::map<std::string, double>& metrics;  ///< docs/metrics.md
  AlarmMemory& memory;

  const AlarmOptions& options() const { return setting.options; }

  /// Empty if it was not measured or is not finite.
  std::optional<double> metric(const std::string& name) const;

  /// Of `env/NAME/`.
  std::optional<double> environment(const std::string& name) const;

  bool is_on(const std::string& alarm) const;
};

struct Reading {
  bool holds = false;
  std::string seen{};  ///< where it holds: a sentence with the numbers, without its full stop
};

/// Empty: the step says nothing about the alarm, whose state stays as it is.
using ReadAlarm = std::optional<Reading> (*)(const AlarmInput& input);

/// "0.0312", "12.5 %".
std::string in_words(double value);
std::string in_percent(double share);

}  // namespace carnot
