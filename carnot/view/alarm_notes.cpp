#include "carnot/view/alarm_notes.h"

#include <cstdint>
#include <map>

#include "carnot/core/alarm/alarms.h"
#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"

namespace carnot {
namespace {

/// Steps in which an alarm lasts, first and last of each run of them.
using Spans = std::vector<std::pair<std::int64_t, std::int64_t>>;

std::string in_words(const Spans& spans) {
  std::string text = spans.size() == 1 && spans[0].first == spans[0].second ? "step " : "steps ";
  for (const auto& [first, last] : spans) {
    if (first != spans.front().first) text += ", ";
    text += std::to_string(first) + (last > first ? " to " + std::to_string(last) : "");
  }
  return text;
}

}  // namespace

std::vector<std::string> alarm_notes(std::string_view metrics) {
  std::map<std::string, Spans, std::less<>> spans;
  for (const std::string_view line : split_lines(metrics)) {
    const auto row = parse_json_object(line, "");
    if (!row || !row->contains("step") || !row->at("step").is_number_integer()) continue;
    const auto step = row->at("step").get<std::int64_t>();
    for (const AlarmRow& alarm : alarms()) {
      const auto found = row->find("alarms/" + std::string(alarm.name));
      if (found == row->end() || *found != 1) continue;
      Spans& own = spans[std::string(alarm.name)];
      if (!own.empty() && own.back().second == step - 1)
        own.back().second = step;
      else
        own.emplace_back(step, step);
    }
  }
  std::vector<std::string> notes;
  for (const AlarmRow& alarm : alarms())
    if (const auto found = spans.find(alarm.name); found != spans.end())
      notes.push_back("Alarm " + std::string(alarm.name) + " in " + in_words(found->second) + ": " +
                      std::string(alarm.watches) + " (docs/alarms.md).");
  return notes;
}

}  // namespace carnot
