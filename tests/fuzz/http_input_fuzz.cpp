// Any text is an address or an error, and any bytes are events of a stream, the same ones however they are cut. The
// first byte gives the number of bytes per piece.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "carnot/http/event_stream.h"
#include "carnot/http/url.h"
#include "tests/fuzz/target.h"

namespace {

std::string events_of(std::string_view bytes, std::size_t size) {
  carnot::EventStream stream(64);
  std::string events;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(size, bytes.size()))) {
    const auto more = stream.add(bytes.substr(0, size), [&](const carnot::ServerSentEvent& event) {
      events += event.event + '|' + event.data + '|' + event.id + '\n';
      return true;
    });
    if (!more) return events + "too long";
  }
  return events;
}

}  // namespace

CARNOT_FUZZ_TARGET(http_input) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  if (const auto url = carnot::parse_url(text); url.ok() && url->shown().size() < 8000) {  // what is encoded grows
    const auto again = carnot::parse_url(url->shown());
    if (!again || again->host != url->host || again->port != url->port || again->path != url->path)
      throw std::logic_error("an address is read differently once it was shown");
  }
  if (events_of(text, 1 + data[0] % 16) != events_of(text, size))
    throw std::logic_error("events depend on how their bytes arrive");
  return 0;
}
