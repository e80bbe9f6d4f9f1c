// http/event_stream.h -- events of a text/event-stream answer (WHATWG HTML, 9.2 Server-sent events), as they come.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "carnot/core/base/result.h"

namespace carnot {

struct ServerSentEvent {
  std::string event = "message";
  std::string data{};  ///< its lines with '\n' between them
  std::string id{};    ///< the last that the stream gave; empty: none
};

class EventStream {
 public:
  /// An event of more bytes is an error.
  explicit EventStream(std::size_t longest = std::size_t{16} << 20) : longest_(longest) {}

  /// Says whether more is wanted.
  using OnEvent = std::function<bool(const ServerSentEvent&)>;

  /// Takes the next bytes and calls `on_event` for every event that is complete with them. False once `on_event`
  /// wanted no more; the rest of the bytes is dropped. Events without data and what follows the last blank line are
  /// none.
  Result<bool> add(std::string_view bytes, const OnEvent& on_event);

 private:
  bool end_line(const OnEvent& on_event);
  void read_field(std::string_view name, std::string_view value);

  std::size_t longest_;
  std::string line_{};
  ServerSentEvent event_{};
  bool has_data_ = false;
  bool after_return_ = false;  // a '\n' right after a '\r' belongs to it
  bool at_start_ = true;
};

}  // namespace carnot
