// Any bytes are requests within their limits and then a refusal with a status, the same ones however the bytes arrive.
// The first byte gives the number that arrive at a time.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "carnot/core/base/check.h"
#include "carnot/http/request_reader.h"
#include "tests/fuzz/target.h"

namespace {

constexpr std::size_t kMost = 4096;

class Bytes final : public carnot::ByteSource {
 public:
  Bytes(std::string_view rest, std::size_t at_a_time) : rest_(rest), at_a_time_(at_a_time) {}

  std::size_t read(char* to, std::size_t size) override {
    const std::size_t count = std::min({size, at_a_time_, rest_.size()});
    rest_.copy(to, count);
    rest_.remove_prefix(count);
    return count;
  }
  carnot::HttpProblem why_ended() const override { return {.message = "ended"}; }

 private:
  std::string_view rest_;
  std::size_t at_a_time_;
};

std::string requests_of(std::string_view text, std::size_t at_a_time) {
  Bytes bytes(text, at_a_time);
  carnot::RequestReader reader(bytes, {.header_bytes = kMost, .body_bytes = kMost});
  for (std::string all;;) {
    carnot::RequestHead head;
    std::string body;
    auto problem = reader.read_head(head);
    if (!problem) problem = reader.read_body(head, body);
    if (problem) {
      CARNOT_CHECK(problem->status >= 400 && !problem->message.empty(), "a refusal says why");
      return all + std::to_string(problem->status) + problem->message;
    }
    CARNOT_CHECK(body.size() <= kMost && (head.is_chunked || body.size() == head.content_length), "the body's size");
    all += head.method + ' ' + head.host + head.path + ' ' + body + '\n';
    for (const carnot::HttpHeader& header : head.headers) CARNOT_CHECK(is_valid_header(header), header.name);
  }
}

}  // namespace

CARNOT_FUZZ_TARGET(http_request) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  CARNOT_CHECK_EQ(requests_of(text, 1 + data[0] % 16), requests_of(text, size));
  return 0;
}
