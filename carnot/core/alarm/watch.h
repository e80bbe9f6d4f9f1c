// alarm/watch.h -- watches a run: after each step, which alarms start.
//
// An alarm starts once its condition has held for as many steps in a row as its row asks for, and is over once it has
// not held for as many. It starts again only after it was over.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "carnot/core/alarm/alarms.h"

namespace carnot {

struct RaisedAlarm {
  const AlarmRow* row = nullptr;
  std::string seen{};  ///< Reading::seen
};

class AlarmWatch {
 public:
  /// `memory`: what memory() was after the last step of a run that continues.
  explicit AlarmWatch(AlarmSetting setting, AlarmMemory memory = {})
      : setting_(std::move(setting)), memory_(std::move(memory)) {}

  /// After a step, with its metrics; 0: after the evaluation before training, with its. Returns the alarms that start.
  std::vector<RaisedAlarm> watch(std::int64_t step, const std::map<std::string, double>& metrics);

  /// alarms/NAME of every alarm that the run has had: 1 while it lasts, else 0.
  std::map<std::string, double> metrics() const;

  /// Those of `raised` that end the run (alarm.stop), by name.
  std::vector<std::string> stopping(const std::vector<RaisedAlarm>& raised) const;

  /// What a run that continues has to know; without alarms of times, which begin again.
  AlarmMemory memory() const;

 private:
  /// Whether the alarm starts with this reading.
  bool starts(const AlarmRow& row, bool holds);

  AlarmSetting setting_;
  AlarmMemory memory_;
};

/// What the user reads: what was seen after `step`, what it usually means, what to try, the example if there is one.
std::string alarm_text(const RaisedAlarm& raised, std::int64_t step, const std::string& example);

}  // namespace carnot
