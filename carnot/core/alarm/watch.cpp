#include "carnot/core/alarm/watch.h"

#include <algorithm>

namespace carnot {

bool AlarmWatch::starts(const AlarmRow& row, bool holds) {
  const std::string name(row.name), in_a_row = name + "/in_a_row";
  const auto on = memory_.find(name + "/on");
  const bool is_on = on != memory_.end() && on->second != 0;
  if (holds == is_on) {
    memory_.erase(in_a_row);
    return false;
  }
  const double needed = row.patience == nullptr ? 1 : setting_.options.*row.patience;
  if (++memory_[in_a_row] < needed) return false;
  memory_.erase(in_a_row);
  memory_[name + "/on"] = holds ? 1 : 0;
  return holds;
}

std::vector<RaisedAlarm> AlarmWatch::watch(std::int64_t step, const std::map<std::string, double>& metrics) {
  std::vector<RaisedAlarm> raised;
  for (const AlarmRow& row : alarms()) {
    auto reading = row.read({.setting = setting_, .step = step, .metrics = metrics, .memory = memory_});
    if (reading && starts(row, reading->holds)) raised.push_back({.row = &row, .seen = std::move(reading->seen)});
  }
  return raised;
}

std::map<std::string, double> AlarmWatch::metrics() const {
  std::map<std::string, double> metrics;
  for (const AlarmRow& row : alarms())
    if (const auto on = memory_.find(std::string(row.name) + "/on"); on != memory_.end())
      metrics["alarms/" + std::string(row.name)] = on->second;
  return metrics;
}

std::vector<std::string> AlarmWatch::stopping(const std::vector<RaisedAlarm>& raised) const {
  std::vector<std::string> names;
  for (const RaisedAlarm& alarm : raised)
    if (std::ranges::count(setting_.options.stop, alarm.row->name) > 0) names.emplace_back(alarm.row->name);
  return names;
}

AlarmMemory AlarmWatch::memory() const {
  AlarmMemory kept = memory_;
  for (const AlarmRow& row : alarms())
    if (row.of_times)
      std::erase_if(kept, [&](const auto& one) { return one.first.starts_with(std::string(row.name) + "/"); });
  return kept;
}

std::string alarm_text(const RaisedAlarm& raised, std::int64_t step, const std::string& example) {
  const std::string name(raised.row->name);
  std::string text = "ALARM " + name + (step == 0 ? " before training" : " after step " + std::to_string(step)) + ": " +
                     raised.seen + ".\n  Usually: " + std::string(raised.row->means) +
                     "\n  To try: " + std::string(raised.row->advice);
  if (!example.empty()) text += "\n  For example: " + example;
  return text + "\n  More: docs/alarms.md#" + name;
}

}  // namespace carnot
