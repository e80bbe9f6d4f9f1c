// http/request_reader.h -- requests from a stream of bytes, one after the other, within limits of size.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "carnot/http/request_head.h"

namespace carnot {

/// Where bytes come from.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Waits for bytes; how many there were, at most `size`. 0: no more will come.
  virtual std::size_t read(char* to, std::size_t size) = 0;
  /// Why no more came.
  virtual HttpProblem why_ended() const = 0;
};

struct RequestLimits {
  std::size_t header_bytes = 0;  ///< of all header lines together
  std::size_t body_bytes = 0;
};

class RequestReader {
 public:
  /// `source` must outlive the reader.
  RequestReader(ByteSource& source, const RequestLimits& limits) : source_(source), limits_(limits) {}

  /// Bytes after the last request have already come.
  bool has_bytes() const { return begin_ < buffer_.size(); }

  /// Each returns why the request is refused. After that, or where the body was not read, nothing more can be read.
  std::optional<HttpProblem> read_head(RequestHead& head);
  /// Adds the body to `body`, without its chunks and trailers.
  std::optional<HttpProblem> read_body(const RequestHead& head, std::string& body);

 private:
  std::optional<HttpProblem> fill();
  std::optional<HttpProblem> read_line(std::string& line, std::size_t limit, const HttpProblem& too_long);
  std::optional<HttpProblem> read_fields(HttpHeaders& fields);
  std::optional<HttpProblem> read_bytes(std::string& body, std::size_t count);
  std::optional<HttpProblem> read_chunks(std::string& body);

  ByteSource& source_;
  RequestLimits limits_;
  std::string buffer_{};
  std::size_t begin_ = 0;
};

}  // namespace carnot
