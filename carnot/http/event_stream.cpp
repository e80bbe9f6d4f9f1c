#include "carnot/http/event_stream.h"

#include <utility>

namespace carnot {

Result<bool> EventStream::add(std::string_view bytes, const OnEvent& on_event) {
  for (const char c : bytes) {
    if (c == '\n' && std::exchange(after_return_, false)) continue;
    after_return_ = c == '\r';
    if (c == '\n' || c == '\r') {
      if (!end_line(on_event)) return false;
      continue;
    }
    if (line_.size() + event_.data.size() >= longest_)
      return Error{"an event of more than " + std::to_string(longest_) + " bytes"};
    line_ += c;
  }
  return true;
}

bool EventStream::end_line(const OnEvent& on_event) {
  const std::string whole = std::exchange(line_, {});
  std::string_view line = whole;
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (std::exchange(at_start_, false) && line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  if (!line.empty()) {
    const std::size_t colon = line.find(':');
    std::string_view value = colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
    if (value.starts_with(' ')) value.remove_prefix(1);
    read_field(line.substr(0, colon), value);
    return true;
  }
  const bool complete = std::exchange(has_data_, false);
  const ServerSentEvent event = std::exchange(event_, {.id = event_.id});
  return !complete || on_event(event);
}

void EventStream::read_field(std::string_view name, std::string_view value) {
  if (name == "data") {
    if (std::exchange(has_data_, true)) event_.data += '\n';
    event_.data += value;
  } else if (name == "event") {
    event_.event = value.empty() ? "message" : value;
  } else if (name == "id" && value.find('\0') == std::string_view::npos) {
    event_.id = value;
  }
}

}  // namespace carnot
