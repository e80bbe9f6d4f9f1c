// alarm/options.h -- `alarm.*`: thresholds of the alarms, and which of them end a run.
//
// Every alarm can be turned off by a threshold that nothing reaches: 1 for shares, 0 for lower bounds.
#pragma once

#include <string>
#include <vector>

#include "carnot/core/base/fields.h"

namespace carnot {

struct AlarmOptions {
  std::vector<std::string> stop{"kernel_mismatch"};  ///< alarms that end the run
  int steps = 3;
  int no_signal_steps = 2;
  double equal_groups = 0.9;
  double duplicate_tasks = 0.5;
  double low_success = 0.05;
  double high_success = 0.95;
  double low_entropy = 0.005;  ///< nats per token, as the next
  double entropy_rise = 1;
  double low_gradient = 1e-8;
  int skipped_updates = 1;
  int clipped_steps = 20;
  double truncated = 0.25;
  double bad_format = 0.5;
  double tool_errors = 0.5;
  double kl = 0.5;                    ///< nats, as the next two
  double log_prob_difference = 0.05;  ///< mean
  double exact_difference = 0;        ///< largest, where both are computed by one kernel set
  double infra_failures = 0.05;
  double environment_wait = 0.5;
  double staleness = 4;
  double evaluation_drop = 0.1;

  void fields(FieldVisitor& visit);
};

}  // namespace carnot
