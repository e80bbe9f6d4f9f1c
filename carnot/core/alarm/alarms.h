// alarm/alarms.h -- the table of alarms: a row says what is watched, what it usually means and what to try.
// docs/alarms.md has a section for each.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "carnot/core/alarm/options.h"
#include "carnot/core/alarm/reading.h"

namespace carnot {

/// The trajectory that shows what an alarm is about; None: numbers say it all.
enum class ExampleOf : std::uint8_t { None, AnyTrajectory, TruncatedTrajectory, InvalidTurn, FailedToolCall };

struct AlarmRow {
  std::string_view name;
  std::string_view key;      ///< of its threshold, in the section `alarm`
  std::string_view watches;  ///< what it reads, for tables
  std::string_view means;    ///< usually; a sentence
  std::string_view advice;   ///< what to try; a sentence
  ReadAlarm read;
  /// Steps in a row for which the condition must hold before the alarm starts, and must not hold before it is over.
  /// Null: one.
  int AlarmOptions::* patience = nullptr;
  ExampleOf example = ExampleOf::None;
  bool of_times = false;  ///< reads the clock: never part of a checkpoint, whose bytes do not depend on the machine
};

/// In the order in which they are read: an alarm may depend on those above it.
std::span<const AlarmRow> alarms();

}  // namespace carnot
