// view/alarm_notes.h -- the alarms of a run as notes at the top of its page.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace carnot {

/// "Alarm no_signal in steps 2 to 40, 51: every score equal since the start (docs/alarms.md)." for each alarm that was
/// raised, in the table's order. `metrics`: the content of a run's metrics.jsonl; lines that cannot be read are passed
/// over.
std::vector<std::string> alarm_notes(std::string_view metrics);

}  // namespace carnot
